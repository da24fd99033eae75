import asyncio
from collections.abc import Callable, Sequence

import pytest

from memory_service.domain.errors import EmbedderUnavailable, IndexUnavailable
from memory_service.domain.model import Memory, MemoryStatus
from memory_service.ports import StoredRow, Vector
from memory_service.upkeep.reindex import Backfill, Progress, keep_ready, reindex
from tests.builders.memories import memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.index import FakeVectorIndex
from tests.fakes.memory_store import FakeMemoryStore


class BusyIndex(FakeVectorIndex):
    """Lets something happen while rows are written."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], None]] = []

    async def upsert(self, rows: Sequence[StoredRow]) -> None:
        await super().upsert(rows)
        if self.meanwhile:
            self.meanwhile.pop(0)()


class World:
    def __init__(self) -> None:
        self.store = FakeMemoryStore(clock=FakeClock(), new_id=FakeIds())
        self.index = BusyIndex()
        self.embedder = FakeEmbedder()
        self.backfill = Backfill(
            collection="c",
            collections=self.store,
            outbox=self.store,
            index=self.index,
            embedder=self.embedder,
            batch=2,
            retry_after=0.001,
        )

    def keep(self, *rows: Memory | tuple[Memory, Vector]) -> None:
        self.store.seed("u1", *rows, fingerprint=self.embedder.fingerprint)

    async def run(self, after: str = "") -> list[Progress]:
        return [progress async for progress in reindex(self.backfill, after=after)]


@pytest.fixture
def world() -> World:
    world = World()
    world.keep(*(memory(f"m{n}") for n in range(5)))
    return world


async def test_all_active_memories_are_written_and_the_collection_is_ready(world: World) -> None:
    world.keep(memory("m1", status=MemoryStatus.DELETED))
    assert not await world.store.ready("c")
    steps = await world.run()
    assert set(world.index.rows) == {"m0", "m2", "m3", "m4"}
    assert [(one.done, one.total, one.after, one.ready) for one in steps] == [
        (2, 4, "m2", False),
        (4, 4, "m4", False),
        (4, 4, "m4", True),
    ]
    assert await world.store.ready("c")
    assert len(world.store.tables.vectors) == 4


async def test_an_empty_store_is_ready_at_once() -> None:
    world = World()
    assert await world.store.ready("c")
    (only,) = await world.run()
    assert (only.done, only.total, only.ready) == (0, 0, True)


async def test_embeddings_that_are_there_are_used(world: World) -> None:
    world.keep((memory("m9"), world.embedder.vector("x")))
    await world.run()
    assert "Content of m9." not in world.embedder.documents
    assert "m9" in world.index.rows


async def test_words_without_a_usable_vector_are_counted_and_not_written(world: World) -> None:
    nothing = [0.0] * 64
    world.embedder.table = {"Content of m0.": nothing, "Content of m1.": nothing}
    world.index.rows["m1"] = (memory("m1"), world.embedder.vector("older words"))
    assert (await world.run())[-1].unusable == 2
    assert set(world.index.rows) == {"m2", "m3", "m4"}
    assert len(world.store.tables.vectors) == 3


async def test_an_outage_is_resumed_where_it_was(world: World) -> None:
    world.index.meanwhile = [lambda: None, lambda: setattr(world.index, "down", "timeout")]
    steps = reindex(world.backfill)
    first = await anext(steps)
    with pytest.raises(IndexUnavailable):
        [await anext(steps) for _ in range(3)]
    world.index.down = ""
    assert not await world.store.ready("c")
    rest = await world.run(first.after)
    assert [one.after for one in rest] == ["m3", "m4", "m4"]
    assert set(world.index.rows) == {f"m{n}" for n in range(5)}


async def test_an_embedder_that_is_away_is_told(world: World) -> None:
    world.embedder.down = "timeout"
    with pytest.raises(EmbedderUnavailable):
        await world.run()


async def test_an_embedder_that_gives_too_few_vectors_is_away(world: World) -> None:
    async def too_few(texts: Sequence[str]) -> Vector:
        return world.embedder.vector(texts[0])[None]

    world.embedder.embed_documents = too_few  # type: ignore[method-assign]
    with pytest.raises(EmbedderUnavailable):
        await world.run()


async def test_a_memory_deleted_while_it_was_written_is_taken_out_again(world: World) -> None:
    world.index.meanwhile = [
        lambda: world.keep(memory("m0", status=MemoryStatus.DELETED, version=2))
    ]
    await world.run()
    assert set(world.index.rows) == {"m1", "m2", "m3", "m4"}


async def test_a_memory_changed_while_it_was_written_is_written_again(world: World) -> None:
    world.index.meanwhile = [
        lambda: world.keep(memory("m0", "newer", version=2)),
        lambda: world.keep(memory("m0", "newest", version=3)),
    ]
    await world.run()
    stored, vector = world.index.rows["m0"]
    assert stored.content == "newest"
    assert vector.tolist() == world.embedder.vector("newest").tolist()


async def test_words_that_lose_and_regain_a_vector_meanwhile_are_counted_rightly(
    world: World,
) -> None:
    world.embedder.table = {"Content of m0.": [0.0] * 64}
    world.index.meanwhile = [lambda: world.keep(memory("m0", "better", version=2))]
    steps = await world.run()
    assert steps[-1].unusable == 0
    assert "m0" in world.index.rows


async def test_many_memories_restored_meanwhile_do_not_make_others_look_deleted(
    world: World,
) -> None:
    world.index.meanwhile = [lambda: world.keep(*(memory(f"m0{n}") for n in range(9)))]
    await world.run()
    assert set(world.index.rows) >= {f"m{n}" for n in range(5)}


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.001)
    pytest.fail("it did not come to that")


async def test_a_collection_that_is_not_ready_is_filled_through_outages(world: World) -> None:
    world.store.down = True
    world.index.down = "breaker_open"
    keeping = asyncio.create_task(keep_ready(world.backfill, every=0.001))
    await until(lambda: world.store.calls["take_over"] > 1)
    world.store.down = False
    await until(lambda: world.index.calls["upsert"] > 1)
    world.index.down = ""
    await until(lambda: "c" in world.store.ready_collections)
    assert set(world.index.rows) == {f"m{n}" for n in range(5)}
    world.index.rows.clear()
    await asyncio.sleep(0.01)
    assert world.index.rows == {}, "a ready collection is left alone"
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
