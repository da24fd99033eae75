"""The sweeps, in memory: expiry, duplicates, purge, and where SQL and the index differ."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import numpy as np
import pytest

from memory_service.domain.duplicates import Duplicate
from memory_service.domain.errors import IndexUnavailable, StoreUnavailable
from memory_service.domain.ingest import IngestOutcome
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Operation,
    UserSettings,
)
from memory_service.ports import RequestKey, StoredRow, Transaction
from memory_service.upkeep import sweeping
from memory_service.upkeep.dedup import Dedup, sweep_duplicates
from memory_service.upkeep.erase import Erase
from memory_service.upkeep.expiry import Expiry, sweep_expired
from memory_service.upkeep.purge import Purge, purge
from memory_service.upkeep.reconcile import Reconcile, reconcile
from memory_service.upkeep.relay import IndexRelay
from memory_service.upkeep.sweeping import Progress, rounds
from tests.builders.memories import NOW, memory
from tests.builders.turns import turn
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.index import FakeVectorIndex
from tests.fakes.memory_store import FakeMemoryStore

T = TypeVar("T")
DAY = timedelta(days=1)
VECTOR = np.eye(1, 64, dtype=np.float32)[0]


class BusyStore(FakeMemoryStore):
    """Lets something happen between what a sweep finds and what it does."""

    meanwhile: Callable[[], None] | None = None

    async def change(self, user_id: str, work: Callable[[Transaction], T]) -> T:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return await super().change(user_id, work)


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = BusyStore(clock=self.clock, new_id=FakeIds())
        self.index = FakeVectorIndex()
        self.embedder = FakeEmbedder()
        self.relay = IndexRelay(
            outbox=self.store, index=self.index, embedder=self.embedder, clock=self.clock
        )
        self.erase = Erase(self.store, self.store, self.index)
        upkeep, clock = self.store.upkeep, self.clock
        self.expiry = Expiry(due=upkeep, writer=self.store, clock=clock, batch=2)
        self.dedup = Dedup(due=upkeep, reader=self.store, writer=self.store, clock=clock, batch=2)
        self.purge = Purge(
            due=upkeep,
            forgetting=upkeep,
            writer=self.store,
            clock=clock,
            end_erasure=self.end_erasure,
            batch=2,
        )
        self.reconcile = Reconcile(
            due=upkeep,
            audit=upkeep,
            index=self.index,
            collections=self.store,
            collection="c",
            clock=clock,
            batch=2,
        )

    def keep(self, *rows: Memory, settings: UserSettings | None = None) -> None:
        self.store.seed(rows[0].user_id, *rows, settings=settings)

    async def end_erasure(self, user_id: str, request_id: str) -> None:
        key = RequestKey(request_id, "EraseUser", b"")
        await self.erase.erase(user_id, key, lambda _receipt: b"receipt")

    def status(self, memory_id: str) -> MemoryStatus:
        return self.store.tables.memories[memory_id].status

    def history(self, memory_id: str) -> list[tuple[Operation, str, str]]:
        return [
            (change.operation, change.actor, change.reason)
            for _, change in self.store.tables.history.values()
            if change.memory_id == memory_id
        ]

    async def told(self) -> None:
        while await self.relay.step():
            pass


@pytest.fixture
def world() -> World:
    return World()


async def last(sweep: AsyncIterator[Progress]) -> dict[str, int]:
    counts: dict[str, int] = {}
    async for progress in sweep:
        counts = dict(progress.counts)
    return counts


# ---------------------------------------------------------------- expiry


async def test_what_has_expired_is_deleted_whatever_its_status_and_the_rest_stays(
    world: World,
) -> None:
    world.keep(
        memory("m1", expire_time=NOW),
        memory("m2", expire_time=NOW, status=MemoryStatus.ARCHIVED),
        memory("m3", expire_time=NOW, status=MemoryStatus.SUPERSEDED),
        memory("m4", expire_time=NOW + DAY),
        memory("m5"),
    )
    world.keep(memory("n1", user_id="u2", expire_time=NOW - DAY))
    assert await last(sweep_expired(world.expiry)) == {"expired": 4, "retention": 0}
    gone = {row.memory_id for row in world.store.tables.memories.values()} - {"m4", "m5"}
    assert {world.status(one) for one in gone} == {MemoryStatus.DELETED}
    assert world.status("m4") is world.status("m5") is MemoryStatus.ACTIVE
    assert world.history("m1")[-1] == (Operation.DELETE, "system", "expired")
    assert await last(sweep_expired(world.expiry)) == {"expired": 0, "retention": 0}


async def test_what_did_not_change_for_its_users_retention_is_deleted(world: World) -> None:
    for user in ("u1", "u2", "u3"):
        settings = UserSettings(retention=None if user == "u3" else 2 * DAY)
        rows = [memory(f"{user}{n}", user_id=user, age=n * DAY) for n in range(5)]
        world.keep(*rows, settings=settings)
    assert await last(sweep_expired(world.expiry)) == {"expired": 0, "retention": 6}
    active = {row.memory_id for user in ("u1", "u2") for row in world.store.tables.active(user)}
    assert active == {"u10", "u11", "u20", "u21"}
    assert len(world.store.tables.active("u3")) == 5
    assert world.history("u12")[-1] == (Operation.DELETE, "system", "retention")


async def test_what_was_renewed_meanwhile_is_spared(world: World) -> None:
    world.keep(memory("m1", expire_time=NOW))
    world.store.meanwhile = lambda: world.keep(memory("m1", expire_time=NOW + DAY))
    assert await last(sweep_expired(world.expiry)) == {"expired": 0, "retention": 0}
    assert world.status("m1") is MemoryStatus.ACTIVE


async def test_what_another_sweep_deleted_is_not_deleted_twice(world: World) -> None:
    world.keep(memory("m1", expire_time=NOW))
    world.store.meanwhile = lambda: world.keep(
        memory("m1", expire_time=NOW, status=MemoryStatus.DELETED)
    )
    assert (await last(sweep_expired(world.expiry)))["expired"] == 0
    world.store.meanwhile = None
    settings = UserSettings(retention=DAY)
    world.keep(memory("m2", age=DAY), settings=settings)
    world.store.meanwhile = lambda: world.keep(memory("m2"))
    assert (await last(sweep_expired(world.expiry)))["retention"] == 0


async def test_two_sweeps_at_once_delete_each_memory_once(world: World) -> None:
    world.keep(*(memory(f"m{n}", expire_time=NOW) for n in range(7)))
    first, second = await asyncio.gather(
        last(sweep_expired(world.expiry)), last(sweep_expired(world.expiry))
    )
    assert first["expired"] + second["expired"] == 7
    assert {row.version for row in world.store.tables.memories.values()} == {2}


# ---------------------------------------------------------------- duplicates


def twice(user_id: str = "u1") -> list[Memory]:
    return [
        memory(f"{user_id}a", "Likes tea.", user_id=user_id, confidence=0.9),
        memory(f"{user_id}b", "Likes tea", user_id=user_id, importance=0.9),
        memory(f"{user_id}c", "Likes cake.", user_id=user_id),
    ]


async def test_what_is_said_twice_is_put_aside_and_the_other_takes_what_it_had(
    world: World,
) -> None:
    world.keep(*twice())
    world.keep(*twice("u2"))
    assert await last(sweep_duplicates(world.dedup)) == {
        "users": 2,
        "memories": 6,
        "duplicates": 2,
        "archived": 2,
    }
    assert world.status("u1b") is MemoryStatus.ARCHIVED
    assert world.status("u1a") is world.status("u1c") is MemoryStatus.ACTIVE
    assert world.store.tables.memories["u1a"].importance == 0.9
    assert world.history("u1b")[-1] == (Operation.ARCHIVE, "system", "duplicate")
    assert world.history("u1a")[-1] == (Operation.UPDATE, "system", "duplicate")
    assert (await last(sweep_duplicates(world.dedup)))["duplicates"] == 0


async def test_a_dry_run_tells_and_changes_nothing(world: World) -> None:
    world.keep(*twice())
    world.keep(*twice("u2"))
    dry = replace(world.dedup, dry_run=True, user_id="u2")
    (told, _) = [progress async for progress in sweep_duplicates(dry)]
    assert (told.user_id, told.found) == ("u2", (Duplicate("u2b", "u2a"),))
    assert told.counts == {"users": 1, "memories": 3, "duplicates": 1, "archived": 0}
    assert world.status("u2b") is MemoryStatus.ACTIVE


async def test_a_duplicate_that_has_nothing_more_leaves_the_other_as_it_is(world: World) -> None:
    world.keep(memory("m1", "Likes tea."), memory("m2", "Likes tea", confidence=0.1))
    await last(sweep_duplicates(world.dedup))
    assert world.status("m2") is MemoryStatus.ARCHIVED
    assert world.store.tables.memories["m1"].version == 1


@pytest.mark.parametrize(
    "meanwhile",
    [
        memory("u1a", "Likes coffee."),
        memory("u1a", "Likes tea.", status=MemoryStatus.DELETED),
        memory("u1b", "Likes tea", status=MemoryStatus.DELETED),
        memory("u1a", "Likes tea.", is_verbatim=True),
        memory("u1b", "Likes tea", is_verbatim=True),
        memory("u1a", "Likes tea.", assistant_id="a"),
        memory("u1a", "Likes tea.", memory_type=MemoryType.PREFERENCE),
    ],
)
async def test_what_is_no_duplicate_any_more_is_spared(world: World, meanwhile: Memory) -> None:
    world.keep(*twice())
    world.store.meanwhile = lambda: world.keep(meanwhile)
    counts = await last(sweep_duplicates(world.dedup))
    assert (counts["duplicates"], counts["archived"]) == (1, 0)
    assert MemoryStatus.ARCHIVED not in {world.status(one) for one in ("u1a", "u1b", "u1c")}


async def test_a_duplicate_that_was_purged_meanwhile_is_left_alone(world: World) -> None:
    world.keep(*twice())
    world.store.meanwhile = lambda: world.store.erase("u1")
    assert (await last(sweep_duplicates(world.dedup)))["archived"] == 0


# ---------------------------------------------------------------- purge


async def test_what_was_deleted_long_ago_is_gone_everywhere_and_the_rest_stays(
    world: World,
) -> None:
    old, young = 30 * DAY + timedelta(seconds=1), 30 * DAY
    world.store.seed(
        "u1",
        *((memory(f"m{n}", status=MemoryStatus.DELETED, age=old), VECTOR) for n in range(3)),
        fingerprint=world.embedder.fingerprint,
    )
    world.keep(memory("m8", status=MemoryStatus.DELETED, age=young), memory("m9", age=old))
    world.keep(memory("n1", user_id="u2", status=MemoryStatus.DELETED, age=old))
    await world.index.upsert([StoredRow(memory("m0"), VECTOR)])
    assert await last(purge(world.purge)) == {
        "erasures": 0,
        "memories": 4,
        "answers": 0,
        "jobs": 0,
    }
    tables = world.store.tables
    assert set(tables.memories) == {"m8", "m9"}
    assert not tables.vectors
    assert world.history("m0")[-1] == (Operation.ERASE, "system", "purged")
    assert all(
        (change.before, change.after) == (None, None)
        for _, change in tables.history.values()
        if change.memory_id == "m0"
    )
    await world.told()
    assert set(world.index.rows) == {"m9"}


async def test_a_memory_that_was_restored_meanwhile_is_spared(world: World) -> None:
    world.keep(memory("m1", status=MemoryStatus.DELETED, age=31 * DAY))
    world.store.meanwhile = lambda: world.keep(memory("m1"))
    assert (await last(purge(world.purge)))["memories"] == 0
    assert world.status("m1") is MemoryStatus.ACTIVE


async def test_old_answers_and_done_jobs_are_forgotten(world: World) -> None:
    for number in range(3):
        key = RequestKey(f"r{number}", "R", b"")
        await world.store.once("u1", key, lambda _: b"answer")
    await world.store.change("u1", lambda tx: tx.jobs.add("j1", turn(), "j", NOW))
    claimed = await world.store.queue.claim(lease=9, now=NOW)
    assert claimed is not None
    await world.store.change("u1", lambda tx: tx.jobs.finish(claimed, IngestOutcome()))
    world.clock.advance(7 * DAY)
    assert (await last(purge(world.purge)))["answers"] == 0
    world.clock.advance(1)
    counts = await last(purge(world.purge))
    assert (counts["answers"], counts["jobs"]) == (3, 0)
    # Never later than the words of a memory that was learnt from it.
    sooner = replace(world.purge, deleted_kept=7 * DAY)
    assert (await last(purge(sooner)))["jobs"] == 1


async def test_an_erasure_that_broke_off_is_ended(world: World) -> None:
    world.keep(memory("m1"))
    world.keep(memory("n1", user_id="u2"))
    key = RequestKey("r1", "EraseUser", b"").part("begin")

    def begin(tx: Transaction) -> bytes:
        tx.removal.begin("r1")
        return b"{}"

    await world.store.once("u1", key, begin)
    assert (await last(purge(world.purge)))["erasures"] == 0
    world.clock.advance(world.purge.erasure_time + timedelta(seconds=1))
    assert (await last(purge(world.purge)))["erasures"] == 1
    assert set(world.store.tables.memories) == {"n1"}
    assert world.store.tables.state("u1").settings == UserSettings()
    assert (await last(purge(world.purge)))["erasures"] == 0


# ---------------------------------------------------------------- reconcile


async def test_drift_is_found_both_ways_and_mended_by_the_relay(world: World) -> None:
    world.keep(*(memory(f"m{n}") for n in range(3)))
    world.keep(memory("n1", user_id="u2"))
    world.keep(memory("d1", status=MemoryStatus.DELETED))
    await world.store.mark_ready("c")
    await world.told()
    assert await last(reconcile(world.reconcile)) == {"users": 2, "missing": 0, "orphaned": 0}
    del world.index.rows["m0"], world.index.rows["n1"]
    strangers = [memory("d1"), memory("x1")]
    await world.index.upsert([StoredRow(row, VECTOR) for row in strangers])
    assert await last(reconcile(world.reconcile)) == {"users": 2, "missing": 2, "orphaned": 2}
    await world.told()
    assert set(world.index.rows) == {"m0", "m1", "m2", "n1"}
    assert await last(reconcile(world.reconcile)) == {"users": 2, "missing": 0, "orphaned": 0}


async def test_one_user_is_compared_alone(world: World) -> None:
    for user in ("u1", "u2"):
        world.keep(memory(f"{user}m", user_id=user))
    await world.store.mark_ready("c")
    await world.told()
    world.index.rows.clear()
    one = replace(world.reconcile, user_id="u2")
    assert await last(reconcile(one)) == {"users": 1, "missing": 1, "orphaned": 0}
    assert [note.memory_id for note in world.store.tables.notes.values() if not note.reached] == [
        "u2m"
    ]


async def test_what_the_relay_has_yet_to_tell_is_no_drift(world: World) -> None:
    world.keep(memory("m1"), memory("m2"))
    await world.store.mark_ready("c")
    assert (await last(reconcile(world.reconcile)))["missing"] == 0
    await world.index.upsert([StoredRow(memory("m1"), VECTOR)])
    assert (await last(reconcile(world.reconcile)))["orphaned"] == 0


async def test_a_memory_that_cannot_be_indexed_is_not_missing(world: World) -> None:
    world.embedder.table["Content of m1."] = [0.0] * 64
    world.keep(memory("m1"))
    await world.store.mark_ready("c")
    await world.told()
    assert world.store.tables.memories["m1"].index_state is IndexState.FAILED
    assert (await last(reconcile(world.reconcile)))["missing"] == 0


async def test_a_collection_that_is_being_filled_is_not_compared(world: World) -> None:
    world.keep(memory("m1"))
    with pytest.raises(IndexUnavailable) as refused:
        await last(reconcile(world.reconcile))
    assert refused.value.cause == "reindexing"


# ---------------------------------------------------------------- rounds


async def test_rounds_go_on_after_an_outage_and_tell_what_a_whole_round_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeping, "FIRST_WAIT", 0.0)
    outcomes: list[Exception | None] = [StoreUnavailable(), IndexUnavailable("timeout"), None]
    heard: list[object] = []
    enough = asyncio.Event()

    async def sweep() -> AsyncIterator[Progress]:
        yield Progress(counts={"done": 1})
        outcome = outcomes.pop(0) if outcomes else None
        if outcome is not None:
            raise outcome

    def on_end(counts: object) -> None:
        heard.append(counts)
        enough.set()

    task = asyncio.create_task(rounds("test", sweep, every=0.0, on_end=on_end))
    await enough.wait()
    task.cancel()
    assert heard[0] == {"done": 1}
    assert outcomes == []


async def test_a_round_needs_no_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "FIRST_WAIT", 0.0)
    again = asyncio.Event()
    runs = iter(range(9))

    async def sweep() -> AsyncIterator[Progress]:
        if next(runs):
            again.set()
        yield Progress(counts={})

    task = asyncio.create_task(rounds("test", sweep, every=0.0))
    await again.wait()
    task.cancel()
