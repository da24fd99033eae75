"""What IndexOutbox promises."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np

from memory_service.domain.model import IndexState, MemoryStatus, Role, Scope
from memory_service.ports import IndexNote, PinnedQuery
from tests.builders.memories import memory
from tests.contract.memory_service.memory_stores import Stores

VECTOR = np.eye(1, 512, dtype=np.float32)[0]
OTHER = np.eye(2, 512, dtype=np.float32)[1]
SYNCED = IndexState.SYNCED


async def claim(stores: Stores, limit: int = 100, lease: float = 30.0) -> Sequence[IndexNote]:
    return await stores.outbox.claim(limit=limit, lease=lease, now=stores.clock.now)


async def told(stores: Stores, *notes: IndexNote, state: IndexState = SYNCED) -> int:
    return await stores.outbox.told(dict.fromkeys(notes, state), now=stores.clock.now)


async def untold(stores: Stores, user_id: str = "u1") -> dict[str, IndexState]:
    wanted = PinnedQuery(scope=Scope(user_id=user_id), now=stores.clock.now)
    return dict((await stores.reader.view(wanted)).untold)


async def test_each_changed_memory_is_noted_once(stores: Stores) -> None:
    (row, _) = await stores.keep(memory("m1"), memory("m2"))
    await stores.change(row, replace(row, title="new", version=2))
    await stores.keep(memory("m3", user_id="u2"))
    assert await stores.outbox.depth() == 3
    notes = await claim(stores)
    assert sorted((note.user_id, note.memory_id, note.attempt) for note in notes) == [
        ("u1", "m1", 1),
        ("u1", "m2", 1),
        ("u2", "m3", 1),
    ]


async def test_the_index_is_told_of_what_the_assistant_said_only_if_it_may_know_it(
    stores: Stores,
) -> None:
    said = memory("m1", is_verbatim=True, role=Role.ASSISTANT)
    (row,) = await stores.keep(said)
    assert (row.role, row.index_state) == (Role.ASSISTANT, IndexState.REMOVED)
    row = await stores.change(row, replace(row, title="new", version=2))
    assert (await stores.outbox.depth(), await untold(stores)) == (0, {})
    row = await stores.change(row, replace(row, role=None, version=3))
    assert (await stores.outbox.depth(), row.index_state) == (1, IndexState.PENDING)
    await told(stores, *await claim(stores))
    await stores.change(row, replace(row, role=Role.ASSISTANT, version=4))
    assert await stores.outbox.depth() == 1


async def test_notes_are_claimed_oldest_first(stores: Stores) -> None:
    for name in ("m3", "m1", "m2"):
        await stores.keep(memory(name))
        stores.clock.advance(1)
    assert [note.memory_id for note in await claim(stores, limit=2)] == ["m3", "m1"]
    assert [note.memory_id for note in await claim(stores, limit=2)] == ["m2"]
    assert list(await claim(stores)) == []


async def test_what_was_told_is_in_doubt_until_it_settles(stores: Stores) -> None:
    await stores.keep(memory("m1"))
    assert await untold(stores) == {"m1": IndexState.PENDING}
    notes = await claim(stores)
    assert await told(stores, *notes) == 1
    assert await stores.outbox.depth() == 0
    assert await untold(stores) == {"m1": IndexState.PENDING}
    assert await untold(stores, "u2") == {}
    assert await stores.outbox.settle(before=stores.clock.now) == 0
    assert await stores.outbox.settle(before=stores.clock.now + timedelta(seconds=1)) == 1
    assert await untold(stores) == {}
    (row,) = await stores.reader.load("u1", ["m1"])
    assert (row.memory.index_state, row.memory.version, row.memory.revision) == (SYNCED, 1, 1)


async def test_what_the_index_cannot_know_stays_failed_until_it_changes(stores: Stores) -> None:
    (row,) = await stores.keep(memory("m1"))
    assert await told(stores, *await claim(stores), state=IndexState.FAILED) == 1
    later = stores.clock.now + timedelta(days=1)
    assert await stores.outbox.settle(before=later) == 0
    assert await untold(stores) == {"m1": IndexState.FAILED}
    assert await stores.outbox.depth() == 0
    await stores.change(row, replace(row, title="new", version=2))
    assert await untold(stores) == {"m1": IndexState.PENDING}
    assert await told(stores, *await claim(stores), state=IndexState.REMOVED) == 1
    assert await stores.outbox.settle(before=later) == 1
    (stored,) = await stores.reader.load("u1", ["m1"])
    assert stored.memory.index_state is IndexState.REMOVED


async def test_a_change_during_a_lease_is_told_again(stores: Stores) -> None:
    (row,) = await stores.keep(memory("m1"))
    notes = await claim(stores)
    await stores.change(row, replace(row, title="new", version=2))
    assert list(await claim(stores)) == [], "two relays would race with old and new words"
    assert await told(stores, *notes) == 0
    assert await untold(stores) == {"m1": IndexState.PENDING}
    (again,) = await claim(stores)
    assert (again.memory_id, again.attempt) == ("m1", 1)
    assert await told(stores, *notes) == 0, "that lease is over"
    assert await told(stores, again) == 1


async def test_a_change_after_it_was_told_is_told_again(stores: Stores) -> None:
    (row,) = await stores.keep(memory("m1"))
    await told(stores, *await claim(stores))
    await stores.change(row, replace(row, status=MemoryStatus.DELETED, version=2))
    (again,) = await claim(stores)
    assert await stores.outbox.settle(before=stores.clock.now + timedelta(days=1)) == 0
    (row_now,) = await stores.outbox.load_any([again], fingerprint="use")
    assert row_now.memory.status is MemoryStatus.DELETED
    assert await told(stores, again, state=IndexState.REMOVED) == 1


async def test_a_change_after_it_settled_is_told_again(stores: Stores) -> None:
    (row,) = await stores.keep(memory("m1"))
    await told(stores, *await claim(stores))
    assert await stores.outbox.settle(before=stores.clock.now + timedelta(seconds=1)) == 1
    await stores.change(row, replace(row, title="new", version=2))
    assert await untold(stores) == {"m1": IndexState.PENDING}
    assert [note.memory_id for note in await claim(stores)] == ["m1"]


async def test_a_lease_that_ran_out_is_another_s(stores: Stores) -> None:
    await stores.keep(memory("m1"))
    (lost,) = await claim(stores, lease=5)
    stores.clock.advance(4.9)
    assert list(await claim(stores)) == []
    stores.clock.advance(0.1)
    assert await told(stores, lost) == 0
    (taken,) = await claim(stores)
    assert (taken.attempt, taken.token != lost.token) == (2, True)
    assert await told(stores, lost) == 0
    await stores.outbox.failed([lost], error="late", retry_at=stores.clock.now)
    assert list(await claim(stores)) == [], "the late relay must not give back another's lease"
    assert await told(stores, taken, lost) == 1


async def test_a_failure_gives_the_note_back_for_later(stores: Stores) -> None:
    await stores.keep(memory("m1"))
    retry_at = stores.clock.now + timedelta(seconds=10)
    await stores.outbox.failed(await claim(stores), error="down" * 999, retry_at=retry_at)
    assert await stores.outbox.depth() == 1
    assert list(await claim(stores)) == []
    stores.clock.advance(10)
    (again,) = await claim(stores)
    assert again.attempt == 2
    await stores.outbox.failed([], error="", retry_at=retry_at)


async def test_two_relays_never_hold_the_same_note(stores: Stores) -> None:
    await stores.keep(*(memory(f"m{number}") for number in range(100)))
    claims = await asyncio.gather(*(claim(stores, limit=15) for _ in range(8)))
    ids = [note.memory_id for notes in claims for note in notes]
    assert len(ids) == len(set(ids))
    rest = await claim(stores, limit=100)
    assert len(ids) + len(rest) == 100


async def test_many_notes_are_told_at_once(stores: Stores) -> None:
    await stores.keep(*(memory(f"m{number}") for number in range(1100)))
    notes = await claim(stores, limit=2000)
    rows = await stores.outbox.load_any(notes, fingerprint="use")
    assert (len(notes), len(rows)) == (1100, 1100)
    assert await told(stores, *notes) == 1100
    assert await told(stores, *notes) == 0
    assert await told(stores) == 0


async def test_rows_are_loaded_whoever_owns_them(stores: Stores) -> None:
    await stores.keep(memory("m1"), vector=VECTOR)
    await stores.keep(memory("m2", user_id="u2"))
    notes = await claim(stores)
    gone = replace(notes[0], memory_id="purged")
    rows = await stores.outbox.load_any([*notes, gone], fingerprint="use")
    vectors = {row.memory.memory_id: row.vector is not None for row in rows}
    assert vectors == {"m1": True, "m2": False}


async def test_missing_embeddings_are_kept_and_present_ones_stay(stores: Stores) -> None:
    await stores.keep(memory("m1"), vector=VECTOR)
    await stores.keep(memory("m2"))
    vectors = {"m1": OTHER, "m2": OTHER, "unknown": OTHER}
    await stores.outbox.store_vectors(vectors, fingerprint="use")
    await stores.outbox.store_vectors(vectors, fingerprint="use")
    await stores.outbox.store_vectors({}, fingerprint="use")
    rows = await stores.reader.load("u1", ["m1", "m2"], fingerprint="use")
    found = {row.memory.memory_id: row.vector for row in rows}
    np.testing.assert_allclose(found["m1"], VECTOR, atol=1e-3)  # type: ignore[arg-type]
    np.testing.assert_allclose(found["m2"], OTHER, atol=1e-3)  # type: ignore[arg-type]


async def test_an_embedding_of_words_that_changed_meanwhile_is_not_kept(stores: Stores) -> None:
    first, _ = await stores.keep(memory("m1"), memory("m2"))
    await stores.change(first, replace(first, speaker="Ann", version=2))
    await stores.outbox.store_vectors(
        {"m1": VECTOR, "m2": VECTOR}, fingerprint="use", versions={"m1": 1, "m2": 1}
    )
    rows = await stores.reader.load("u1", ["m1", "m2"], fingerprint="use")
    assert {row.memory.memory_id: row.vector is not None for row in rows} == {
        "m1": False,
        "m2": True,
    }
