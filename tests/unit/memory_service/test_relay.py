import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.errors import IndexUnavailable, StoreUnavailable
from memory_service.domain.model import IndexState, Memory, MemoryStatus, Role
from memory_service.ports import IndexNote, StoredRow, Vector
from memory_service.upkeep.relay import IndexRelay, RelaySettings
from rpc.ids import utc_now
from tests.builders.memories import memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.index import FakeVectorIndex
from tests.fakes.memory_store import FakeMemoryStore


class PickyIndex(FakeVectorIndex):
    """Cannot take some rows: refuses, or breaks, whichever fault is given for the id."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, Exception] = {}

    async def upsert(self, rows: Sequence[StoredRow]) -> None:
        for row in rows:
            if row.memory.memory_id in self.faults:
                raise self.faults[row.memory.memory_id]
        await super().upsert(rows)


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FakeMemoryStore(clock=self.clock, new_id=FakeIds())
        self.index = PickyIndex()
        self.embedder = FakeEmbedder()
        self.depths: list[int] = []
        self.relay = self.another()

    def another(self, **settings: float) -> IndexRelay:
        wanted = {"first_wait": 1.0, "longest_wait": 8.0, **settings}
        return IndexRelay(
            outbox=self.store,
            index=self.index,
            embedder=self.embedder,
            clock=self.clock,
            settings=RelaySettings(**wanted),  # type: ignore[arg-type]
            on_depth=self.depths.append,
        )

    def keep(self, *rows: Memory | tuple[Memory, Vector]) -> None:
        self.store.seed("u1", *rows, fingerprint=self.embedder.fingerprint)

    def state(self, memory_id: str) -> IndexState:
        return self.store.tables.memories[memory_id].index_state

    def noted(self) -> set[str]:
        return set(self.store.tables.notes)


@pytest.fixture
def world() -> World:
    return World()


async def test_a_memory_is_embedded_told_and_its_embedding_kept(world: World) -> None:
    world.keep(memory("m1", speaker="Ann"))
    assert await world.relay.step() == 1
    assert world.state("m1") is IndexState.SYNCED
    assert world.embedder.documents == ["Ann: Content of m1."]
    assert set(world.index.rows) == {"m1"}
    assert set(world.store.tables.vectors) == {("m1", world.embedder.fingerprint)}
    assert await world.relay.step() == 0


async def test_an_embedding_that_is_there_is_not_made_again(world: World) -> None:
    world.keep((memory("m1"), world.embedder.vector("x")))
    await world.relay.step()
    assert world.embedder.documents == []
    assert world.state("m1") is IndexState.SYNCED


async def test_the_index_never_hears_of_what_the_assistant_said(world: World) -> None:
    said = memory("m1", is_verbatim=True, role=Role.ASSISTANT)
    world.keep(said)
    assert await world.relay.step() == 0
    assert world.state("m1") is IndexState.REMOVED
    world.keep(replace(said, role=None))
    assert await world.relay.step() == 1
    assert set(world.index.rows) == {"m1"}
    world.keep(said)
    await world.relay.step()
    assert world.index.rows == {}
    assert world.state("m1") is IndexState.REMOVED


async def test_what_is_no_longer_active_is_removed(world: World) -> None:
    world.keep(memory("m1"), memory("m2"))
    await world.relay.step()
    world.keep(memory("m1", status=MemoryStatus.DELETED))
    del world.store.tables.memories["m2"]
    world.store.tables.notes["m2"] = replace(
        world.store.tables.notes["m1"], memory_id="m2", user_id="u1"
    )
    await world.relay.step()
    assert world.index.rows == {}
    assert world.state("m1") is IndexState.REMOVED


async def test_words_without_a_usable_vector_are_failed_and_leave_the_index(world: World) -> None:
    world.keep(memory("m1"), memory("m2"))
    await world.relay.step()
    world.embedder.table = {"nothing": [0.0] * 64, "odd": [float("nan")] * 64}
    world.keep(memory("m1", "nothing", version=2), memory("m2", "odd", version=2), memory("m3"))
    await world.relay.step()
    states = [world.state(memory_id) for memory_id in ("m1", "m2", "m3")]
    assert states == [IndexState.FAILED, IndexState.FAILED, IndexState.SYNCED]
    assert set(world.index.rows) == {"m3"}


@pytest.mark.parametrize("cause", ["timeout", "unavailable", "breaker_open"])
async def test_an_outage_of_the_index_loses_nothing(world: World, cause: str) -> None:
    world.keep(memory("m1"), memory("m2"))
    world.index.down = cause
    for _ in range(30):
        await world.relay.step()
        world.clock.advance(8)
    assert await world.store.depth() == 2
    world.index.down = ""
    assert await world.relay.step() == 2
    assert await world.store.depth() == 0


async def test_after_an_outage_notes_wait_for_a_time_that_doubles_up_to_the_longest(
    world: World,
) -> None:
    world.keep(memory("m1"))
    world.index.down = "unavailable"
    waits = []
    for _ in range(6):
        await world.relay.step()
        waits.append((world.store.tables.notes["m1"].due - world.clock.now).total_seconds())
        world.clock.advance(8)
    for wait, longest in zip(waits, [1, 2, 4, 8, 8, 8], strict=True):
        assert longest / 2 <= wait <= longest


async def test_a_running_relay_asks_less_and_less_often_while_an_outage_lasts() -> None:
    store, index = FakeMemoryStore(clock=utc_now, new_id=FakeIds()), FakeVectorIndex()
    store.seed("u1", memory("m1"), fingerprint="fake")
    index.down = "unavailable"
    settings = RelaySettings(first_wait=0.02, longest_wait=60.0, poll=0.001)
    relay = IndexRelay(
        outbox=store, index=index, embedder=FakeEmbedder(), clock=utc_now, settings=settings
    )
    loop = asyncio.get_running_loop()
    begun = loop.time()
    running = asyncio.create_task(relay.run())
    await until(lambda: index.calls["upsert"] == 6)
    assert loop.time() - begun >= 0.5 * (0.02 + 0.04 + 0.08 + 0.16 + 0.32)
    relay.stop()
    await running


async def test_a_relay_whose_index_is_away_leaves_its_notes_to_one_whose_is_not() -> None:
    store = FakeMemoryStore(clock=utc_now, new_id=FakeIds())
    away, there = FakeVectorIndex(), FakeVectorIndex()
    away.down = "breaker_open"
    settings = RelaySettings(first_wait=0.02, longest_wait=0.02, poll=0.02)
    relays = [
        IndexRelay(
            outbox=store, index=index, embedder=FakeEmbedder(), clock=utc_now, settings=settings
        )
        for index in (away, there)
    ]
    running = [asyncio.create_task(relay.run()) for relay in relays]
    for number in range(5):
        store.seed("u1", memory(f"m{number}"), fingerprint="fake")
        await until(lambda: len(there.rows) > number)  # noqa: B023
    for relay in relays:
        relay.stop()
    await asyncio.gather(*running)
    assert away.calls["upsert"] <= 5


async def test_an_outage_of_the_embedder_delays_only_what_has_to_be_embedded(world: World) -> None:
    world.keep(
        memory("m1"),
        (memory("m2"), world.embedder.vector("x")),
        memory("m3", status=MemoryStatus.DELETED),
    )
    world.embedder.down = "timeout"
    await world.relay.step()
    states = [world.state(memory_id) for memory_id in ("m1", "m2", "m3")]
    assert states == [IndexState.PENDING, IndexState.SYNCED, IndexState.REMOVED]
    world.embedder.down = ""
    world.clock.advance(8)
    await world.relay.step()
    assert world.state("m1") is IndexState.SYNCED


@pytest.mark.parametrize("fault", [IndexUnavailable("refused"), RuntimeError("bug"), ValueError()])
async def test_a_poison_row_holds_up_no_other(world: World, fault: Exception) -> None:
    world.keep(*(memory(f"m{n}") for n in range(5)))
    world.index.faults = {"m2": fault}
    for _ in range(20):
        await world.relay.step()
        world.clock.advance(8)
    assert set(world.index.rows) == {"m0", "m1", "m3", "m4"}
    assert await world.store.depth() == 1
    world.index.faults = {}
    await world.relay.step()
    assert world.state("m2") is IndexState.SYNCED


async def test_an_outage_amid_poison_gives_all_back(world: World) -> None:
    world.keep(memory("m1"), memory("m2"))
    world.index.faults = {
        "m1": IndexUnavailable("refused"),
        "m2": IndexUnavailable("timeout"),
    }
    await world.relay.step()
    assert await world.store.depth() == 2
    world.index.faults = {}
    world.clock.advance(8)
    await world.relay.step()
    assert await world.store.depth() == 0


async def test_an_outage_of_sql_amid_a_step_leaves_the_notes_to_their_lease(world: World) -> None:
    world.keep(memory("m1"))
    plain = world.store.load_any

    async def away(notes: Sequence[IndexNote], *, fingerprint: str) -> Sequence[StoredRow]:
        world.store.down = True
        return await plain(notes, fingerprint=fingerprint)

    world.store.load_any = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await world.relay.step()
    world.store.down, world.store.load_any = False, plain  # type: ignore[method-assign]
    assert await world.relay.step() == 0
    world.clock.advance(60)
    assert await world.relay.step() == 1
    assert world.state("m1") is IndexState.SYNCED


async def test_a_memory_that_changed_meanwhile_is_told_again(world: World) -> None:
    world.keep(memory("m1", "old"))
    plain = world.store.load_any

    async def changing(notes: Sequence[IndexNote], *, fingerprint: str) -> Sequence[StoredRow]:
        rows = await plain(notes, fingerprint=fingerprint)
        if rows[0].memory.content == "old":
            world.keep(memory("m1", "new", version=2))
        return rows

    world.store.load_any = changing  # type: ignore[method-assign]
    await world.relay.step()
    assert world.state("m1") is IndexState.PENDING
    assert world.store.tables.vectors == {}, "an embedding of words that it no longer says"
    await world.relay.step()
    assert world.state("m1") is IndexState.SYNCED
    assert world.index.rows["m1"][0].content == "new"


async def test_told_notes_stay_in_doubt_until_searches_see_them_for_sure(world: World) -> None:
    relay = world.another(visible_after=10.0)
    world.keep(memory("m1"))
    await relay.step()
    world.clock.advance(10)
    await relay.step()
    assert world.noted() == {"m1"}
    world.clock.advance(timedelta(microseconds=1))
    await relay.step()
    assert world.noted() == set()


async def test_a_batch_is_no_larger_than_its_setting(world: World) -> None:
    relay = world.another(batch=2)
    world.keep(*(memory(f"m{n}") for n in range(5)))
    assert [await relay.step() for _ in range(4)] == [2, 2, 1, 0]


async def until(condition: object) -> None:
    for _ in range(2000):
        if condition():  # type: ignore[operator]
            return
        await asyncio.sleep(0.001)
    pytest.fail("it did not come to that")


async def test_it_runs_until_it_is_stopped_and_wakes_after_a_write(world: World) -> None:
    relay = world.another(poll=3600.0)
    running = asyncio.create_task(relay.run())
    await until(lambda: world.store.calls["claim"] == 1)
    world.keep(memory("m1"))
    relay.notify()
    await until(lambda: "m1" in world.index.rows)
    relay.stop()
    await running
    assert world.depths == [0]


async def test_writes_in_a_row_are_told_in_one_batch(world: World) -> None:
    relay = world.another(poll=3600.0, gather=0.05)
    running = asyncio.create_task(relay.run())
    await until(lambda: world.store.calls["claim"] == 1)
    for number in range(5):
        world.keep(memory(f"m{number}"))
        relay.notify()
        await asyncio.sleep(0)
    await until(lambda: len(world.index.rows) == 5)
    assert world.index.calls["upsert"] == 1
    relay.stop()
    await running


async def test_it_polls_without_being_told(world: World) -> None:
    relay = world.another(poll=0.001)
    running = asyncio.create_task(relay.run())
    await until(lambda: world.store.calls["claim"] > 3)
    world.clock.advance(5)
    await until(lambda: len(world.depths) == 2)
    relay.stop()
    await running


@pytest.mark.parametrize("broken", ["store", "bug", "index"])
async def test_nothing_that_happens_ends_the_loop(world: World, broken: str) -> None:
    relay = world.another(poll=0.001, first_wait=0.001)
    plain = world.store.claim
    world.keep(memory("m1"))
    if broken == "store":
        world.store.down = True
    elif broken == "index":
        world.index.down = "unavailable"
    else:

        async def claim(**_: object) -> Sequence[IndexNote]:
            world.store.calls["broken"] += 1
            message = "bug"
            raise RuntimeError(message)

        world.store.claim = claim  # type: ignore[method-assign]
    running = asyncio.create_task(relay.run())
    await until(lambda: world.store.calls.total() + world.index.calls.total() > 3)
    world.store.down, world.index.down = False, ""
    world.store.claim = plain  # type: ignore[method-assign]
    for _ in range(2000):
        world.clock.advance(1)
        if "m1" in world.index.rows:
            break
        await asyncio.sleep(0.001)
    relay.stop()
    await running
    assert "m1" in world.index.rows
