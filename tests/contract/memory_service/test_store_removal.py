"""What Transaction.removal promises."""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pytest

from memory_service.domain.erasure import Store
from memory_service.domain.errors import LeaseLost
from memory_service.domain.ingest import IngestOutcome, Turn
from memory_service.domain.model import MemoryStatus, Operation, Scope, UserSettings
from memory_service.ports import Counts, MemoryFilter, PinnedQuery, RequestKey, Transaction
from tests.builders.memories import memory
from tests.builders.turns import turn
from tests.contract.memory_service.memory_stores import Stores, created

VECTOR = np.eye(1, 512, dtype=np.float32)[0]
OPERATOR = {"actor": "operator", "reason": "purged"}


async def removed(stores: Stores, method: str, *arguments: object) -> Counts:
    def work(transaction: Transaction) -> Counts:
        counts: Counts = getattr(transaction.removal, method)(*arguments)
        return counts

    return await stores.writer.change("u1", work)


async def purged(stores: Stores, *ids: str, age: timedelta = timedelta(0)) -> int:
    before = stores.clock() - age
    return await stores.writer.change(
        "u1", lambda transaction: transaction.removal.purge(ids, before=before, **OPERATOR)
    )


async def ids_of(stores: Stores, user_id: str = "u1") -> list[str]:
    rows = await stores.reader.page(user_id, MemoryFilter(), before="", limit=500)
    return sorted(row.memory_id for row in rows)


async def claimed_ids(stores: Stores) -> set[str]:
    notes = await stores.outbox.claim(limit=500, lease=60, now=stores.clock())
    return {note.memory_id for note in notes}


async def deleted(stores: Stores, *ids: str, vector: bool = False) -> None:
    rows = await stores.keep(*map(memory, ids), vector=VECTOR if vector else None)
    for row in rows:
        await stores.change(row, replace(row, status=MemoryStatus.DELETED, version=2))


async def test_an_erasure_takes_all_of_one_user_in_steps_and_nothing_of_another(
    stores: Stores,
) -> None:
    await stores.keep(*(memory(f"m{n}") for n in range(5)), vector=VECTOR)
    await stores.keep(memory("n1", user_id="u2"), vector=VECTOR)
    await stores.allow(UserSettings(sensitive_memory_enabled=True, retention=timedelta(days=1)))
    begun = await removed(stores, "begin", "r")
    assert (begun[Store.REQUESTS], begun[Store.STATES]) == (2, 1)
    steps = [await removed(stores, "some", 3) for _ in range(3)]
    assert [step[Store.MEMORIES] for step in steps] == [3, 2, 0]
    assert [step[Store.EMBEDDINGS] for step in steps] == [3, 2, 0]
    assert [step[Store.HISTORY] for step in steps] == [3, 2, 0]
    assert [step[Store.OUTBOX] for step in steps] == [3, 2, 0]
    await removed(stores, "finish")
    assert await ids_of(stores) == []
    assert await ids_of(stores, "u2") == ["n1"]
    (theirs,) = await stores.reader.load("u2", ["n1"], fingerprint="use")
    assert theirs.vector is not None


async def test_a_user_is_closed_from_the_first_step_to_the_last(stores: Stores) -> None:
    await stores.allow(UserSettings(sensitive_memory_enabled=True))
    stores.clock.advance(1)
    await removed(stores, "begin", "r")
    wanted = PinnedQuery(scope=Scope(user_id="u1"), now=stores.clock())
    marked = (await stores.reader.view(wanted)).state
    assert not marked.settings.memory_enabled
    assert not marked.settings.sensitive_memory_enabled
    assert (marked.erasing, marked.erase_time, marked.erase_revision) == ("r", stores.clock(), 2)
    stores.clock.advance(1)
    await removed(stores, "finish")
    anew = (await stores.reader.view(wanted)).state
    assert anew.settings == UserSettings()
    assert (anew.erasing, anew.erase_time, anew.erase_revision) == ("", marked.erase_time, 3)
    assert anew.void_before == 3


async def test_a_user_of_whom_nothing_was_known_has_nothing_to_remove(stores: Stores) -> None:
    for step in ("begin", "finish"):
        counts = await removed(stores, step, *(["r"] if step == "begin" else []))
        assert not any(counts.values())
    assert not any((await removed(stores, "some", 5)).values())


async def test_the_index_is_to_be_told_about_what_is_gone(stores: Stores) -> None:
    (row,) = await stores.keep(memory("m1"))
    notes = await stores.outbox.claim(limit=9, lease=60, now=stores.clock())
    await removed(stores, "some", 5)
    assert await stores.outbox.load_any(notes, fingerprint="use") == []
    stores.clock.advance(1)
    # The relay told of it before it knew: told again.
    assert await stores.outbox.told(dict.fromkeys(notes, row.index_state), now=stores.clock()) == 0
    assert await claimed_ids(stores) == {"m1"}


async def test_a_memory_without_a_note_gets_one_when_it_goes(stores: Stores) -> None:
    (row,) = await stores.keep(memory("m1"))
    notes = await stores.outbox.claim(limit=9, lease=60, now=stores.clock())
    await stores.outbox.told(dict.fromkeys(notes, row.index_state), now=stores.clock())
    stores.clock.advance(1)
    assert await stores.outbox.settle(before=stores.clock()) == 1
    assert (await removed(stores, "some", 5))[Store.OUTBOX] == 0
    assert await claimed_ids(stores) == {"m1"}


async def test_queued_jobs_are_gone_and_a_running_one_has_lost_its_lease(stores: Stores) -> None:
    for number, user in enumerate(("u1", "u1", "u2")):
        work = partial(_add_job, turn(user_id=user), f"j{number}", stores.clock())
        await stores.writer.change(user, work)
    running = await stores.queue.claim(lease=60, now=stores.clock())
    assert running is not None
    assert running.job.job_id == "j0"
    assert (await removed(stores, "begin", "r"))[Store.JOBS] == 2
    with pytest.raises(LeaseLost):
        await stores.writer.change("u1", lambda tx: tx.jobs.finish(running, IngestOutcome()))
    next_one = await stores.queue.claim(lease=60, now=stores.clock())
    assert next_one is not None
    assert next_one.job.job_id == "j2"
    assert await stores.queue.claim(lease=60, now=stores.clock()) is None


def _add_job(what: Turn, job_id: str, now: datetime, transaction: Transaction) -> None:
    transaction.jobs.add(job_id, what, job_id, now)


async def test_only_what_was_deleted_before_is_purged(stores: Stores) -> None:
    await deleted(stores, "m1", vector=True)
    await stores.keep(memory("m2"))
    await stores.keep(memory("n1", user_id="u2", status=MemoryStatus.DELETED))
    stores.clock.advance(10)
    assert await purged(stores, "m1", "m2", "n1", age=timedelta(seconds=10)) == 0
    assert await purged(stores, "m1", "m2", "n1", age=timedelta(seconds=9)) == 1
    assert await ids_of(stores) == ["m2"]
    assert await ids_of(stores, "u2") == ["n1"]
    assert await purged(stores, "m1") == 0


async def test_what_was_read_before_a_purge_is_void(stores: Stores) -> None:
    await deleted(stores, "m1")
    stores.clock.advance(1)
    wanted = PinnedQuery(scope=Scope(user_id="u1"), now=stores.clock())
    assert (await stores.reader.view(wanted)).state.void_before == 0
    await purged(stores, "m1")
    state = (await stores.reader.view(wanted)).state
    assert state.void_before == state.revision
    await purged(stores, "m1")
    assert (await stores.reader.view(wanted)).state.void_before == state.revision


async def test_a_purged_id_is_free_and_its_vectors_are_gone(stores: Stores) -> None:
    await deleted(stores, "m1", vector=True)
    stores.clock.advance(1)
    await purged(stores, "m1")
    await stores.keep(memory("m1"))
    (row,) = await stores.reader.load("u1", ["m1"], fingerprint="use")
    assert row.vector is None


async def test_history_keeps_what_was_done_to_a_purged_memory_without_its_words(
    stores: Stores,
) -> None:
    await deleted(stores, "m1")
    await stores.keep(memory("m2"))
    stores.clock.advance(1)
    await purged(stores, "m1")
    last, *earlier = await stores.history.page("u1", "m1", before=0, limit=9)
    assert (last.operation, last.actor, last.reason) == (Operation.ERASE, "operator", "purged")
    assert (last.version, last.create_time) == (3, stores.clock())
    assert [one.version for one in earlier] == [2, 1]
    for change in (last, *earlier):
        assert (change.before, change.after, change.decision) == (None, None, None)
    (other,) = await stores.history.page("u1", "m2", before=0, limit=9)
    assert other.after is not None


async def test_answers_that_name_what_is_purged_are_emptied(stores: Stores) -> None:
    await deleted(stores, "m1")
    first, second = RequestKey("a", "R", b""), RequestKey("b", "R", b"")
    await stores.writer.once("u1", first, lambda _: b"\x0a\x02m1 tea")
    await stores.writer.once("u1", second, lambda _: b"about another")
    stores.clock.advance(1)
    await purged(stores, "m1")
    assert await stores.writer.once("u1", first, lambda _: b"new") == b""
    assert await stores.writer.once("u1", second, lambda _: b"new") == b"about another"


async def test_what_is_purged_and_put_in_one_transaction_agree(stores: Stores) -> None:
    await deleted(stores, "m1")
    stores.clock.advance(1)

    def work(transaction: Transaction) -> None:
        assert transaction.removal.purge(["m1"], before=stores.clock(), **OPERATOR) == 1
        transaction.put(created(memory("m1")))

    await stores.writer.change("u1", work)
    assert await ids_of(stores) == ["m1"]
