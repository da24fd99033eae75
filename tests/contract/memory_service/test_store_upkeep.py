"""What Due, Forgetting and IndexAudit promise."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.ingest import IngestOutcome
from memory_service.domain.model import IndexState, MemoryStatus, Role, UserSettings
from memory_service.ports import IndexView, MemoryRef, RequestKey
from tests.builders.memories import NOW, memory
from tests.builders.turns import turn
from tests.contract.memory_service.memory_stores import Stores

SECOND = timedelta(seconds=1)
LATER = NOW + SECOND


async def test_users_come_in_pages_by_their_ids_also_those_without_memories(
    stores: Stores,
) -> None:
    for user in ("u2", "u1", "ü", "U1"):
        await stores.allow(UserSettings(), user)
    assert await stores.due.users(after="", limit=9) == ["U1", "u1", "u2", "ü"]
    assert await stores.due.users(after="U1", limit=2) == ["u1", "u2"]
    assert await stores.due.users(after="ü", limit=2) == []


async def test_memories_expire_at_their_time_in_any_status_but_deleted(stores: Stores) -> None:
    await stores.keep(
        memory("m1", expire_time=NOW),
        memory("m2", expire_time=LATER),
        memory("m3"),
        *(
            memory(f"{status}", status=status, expire_time=NOW)
            for status in MemoryStatus
            if status is not MemoryStatus.ACTIVE
        ),
    )
    await stores.keep(memory("n1", user_id="u2", expire_time=NOW))
    assert set(await stores.due.expired(now=NOW, limit=9)) == {
        MemoryRef("u1", "m1"),
        MemoryRef("u1", "archived"),
        MemoryRef("u1", "superseded"),
        MemoryRef("u2", "n1"),
    }
    assert len(await stores.due.expired(now=NOW, limit=2)) == 2
    assert await stores.due.expired(now=NOW - SECOND, limit=9) == []


async def test_users_with_a_retention_are_named_with_it(stores: Stores) -> None:
    odd = timedelta(days=3, microseconds=1)
    await stores.allow(UserSettings(retention=odd), "u1")
    await stores.allow(UserSettings(), "u2")
    await stores.allow(UserSettings(retention=SECOND), "u3")
    assert await stores.due.retentions(after="", limit=9) == [("u1", odd), ("u3", SECOND)]
    assert await stores.due.retentions(after="", limit=1) == [("u1", odd)]
    assert await stores.due.retentions(after="u1", limit=9) == [("u3", SECOND)]


async def test_what_did_not_change_since_a_time_is_found_for_one_user(stores: Stores) -> None:
    await stores.keep(
        memory("m1", age=SECOND),
        memory("m2"),
        memory("m3", age=SECOND, status=MemoryStatus.ARCHIVED),
        memory("m4", age=SECOND, status=MemoryStatus.DELETED),
    )
    await stores.keep(memory("n1", user_id="u2", age=SECOND))
    found = await stores.due.unchanged("u1", since=NOW - SECOND, limit=9)
    assert set(found) == {MemoryRef("u1", "m1"), MemoryRef("u1", "m3")}
    assert len(await stores.due.unchanged("u1", since=NOW, limit=1)) == 1


async def test_deleted_memories_are_found_by_the_time_of_that_oldest_first(
    stores: Stores,
) -> None:
    row, other = await stores.keep(memory("m1", age=SECOND), memory("m2", age=SECOND))
    gone = await stores.change(
        row, replace(row, status=MemoryStatus.DELETED, update_time=NOW, version=2)
    )
    await stores.keep(
        memory("n1", user_id="u2", status=MemoryStatus.DELETED, age=timedelta(seconds=2))
    )
    refs = [MemoryRef("u2", "n1"), MemoryRef("u1", "m1")]
    assert await stores.due.deleted(before=LATER, limit=9) == refs
    assert await stores.due.deleted(before=LATER, limit=1) == refs[:1]
    assert await stores.due.deleted(before=NOW, limit=9) == refs[:1]
    await stores.change(gone, replace(gone, status=MemoryStatus.ACTIVE, version=3))
    assert await stores.due.deleted(before=LATER, limit=9) == refs[:1]
    assert other.status is MemoryStatus.ACTIVE


async def test_erasures_that_did_not_end_are_found(stores: Stores) -> None:
    for user in ("u1", "u2"):
        await stores.writer.change(user, lambda tx: tx.removal.begin("r"))
    await stores.writer.change("u2", lambda tx: tx.removal.finish())
    assert await stores.due.erasures(before=LATER, limit=9) == [("u1", "r")]
    assert await stores.due.erasures(before=LATER, limit=0) == []
    assert await stores.due.erasures(before=NOW, limit=9) == []


async def test_old_answers_are_forgotten_some_at_a_time_and_young_ones_kept(
    stores: Stores,
) -> None:
    keys = [RequestKey(f"r{number}", "R", b"") for number in range(4)]
    for key in keys[:3]:
        await stores.writer.once("u1", key, lambda _: b"old")
    stores.clock.advance(1)
    await stores.writer.once("u1", keys[3], lambda _: b"young")
    before = stores.clock()
    forgotten = [await stores.forgetting.requests(before=before, limit=2) for _ in range(3)]
    assert forgotten == [2, 1, 0]
    answers = [await stores.writer.once("u1", key, lambda _: b"new") for key in keys]
    assert answers == [b"new", b"new", b"new", b"young"]


async def test_done_jobs_are_forgotten_and_others_kept_however_old(stores: Stores) -> None:
    for number in range(3):
        what, job_id = turn(turn_id=f"t{number}"), f"j{number}"
        await stores.writer.change(
            "u1",
            lambda tx, w=what, j=job_id: tx.jobs.add(j, w, j, stores.clock()),  # type: ignore[misc]
        )
    for _ in range(2):
        claimed = await stores.queue.claim(lease=9, now=stores.clock())
        assert claimed is not None
        await stores.writer.change("u1", lambda tx, c=claimed: tx.jobs.finish(c, IngestOutcome()))  # type: ignore[misc]
    stores.clock.advance(1)
    assert await stores.forgetting.jobs(before=NOW, limit=9) == 0
    assert await stores.forgetting.jobs(before=LATER, limit=1) == 1
    assert await stores.forgetting.jobs(before=LATER, limit=9) == 1
    assert await stores.jobs.get("u1", "j0") is None
    assert await stores.jobs.get("u1", "j2") is not None


async def reach(stores: Stores, **states: IndexState) -> None:
    """Tell of the memories so named, as a relay would."""
    notes = await stores.outbox.claim(limit=99, lease=60, now=stores.clock())
    told = {n: states[n.memory_id] for n in notes if n.memory_id in states}
    await stores.outbox.told(told, now=stores.clock())


async def test_what_the_index_should_hold_is_what_it_was_told(stores: Stores) -> None:
    await stores.keep(*map(memory, ("m1", "m2", "m3", "m4")))
    await stores.keep(memory("n1", user_id="u2"))
    await stores.keep(memory("d1", status=MemoryStatus.DELETED))
    await stores.keep(memory("v1", is_verbatim=True, role=Role.ASSISTANT))
    await reach(
        stores,
        m1=IndexState.SYNCED,
        m2=IndexState.FAILED,
        d1=IndexState.REMOVED,
        n1=IndexState.SYNCED,
    )
    view = await stores.audit.view("u1")
    assert view == IndexView(settled=frozenset({"m1"}), waiting=frozenset({"m3", "m4"}))
    stores.clock.advance(1)
    await stores.outbox.settle(before=stores.clock())
    assert await stores.audit.view("u1") == view


@pytest.mark.parametrize("known", [True, False])
async def test_reminded_of_it_the_index_is_told_again_whether_it_is_a_memory_or_not(
    stores: Stores, *, known: bool
) -> None:
    if known:
        await stores.keep(memory("m1"))
        await reach(stores, m1=IndexState.SYNCED)
    await stores.audit.remind("u1", ["m1"], now=stores.clock())
    (note,) = await stores.outbox.claim(limit=9, lease=60, now=stores.clock())
    assert (note.user_id, note.memory_id, note.attempt) == ("u1", "m1", 1)
    assert len(await stores.outbox.load_any([note], fingerprint="use")) == known


async def test_reminders_and_writes_at_once_lose_nothing(stores: Stores) -> None:
    ids = [f"m{number:03}" for number in range(40)]

    async def remind() -> None:
        for _ in range(5):
            await stores.audit.remind("u1", ids, now=stores.clock())

    async def write() -> None:
        for one in ids:
            await stores.keep(memory(one))

    await asyncio.gather(remind(), write(), remind())
    assert await stores.outbox.depth() == 40
