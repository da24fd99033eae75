"""SQL, relay, embedder and Milvus together: what is written is found, what is deleted is not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memory_service.adapters.embedder_hash import HashEmbedder
from memory_service.adapters.milvus.address import MilvusAddress, Timeouts
from memory_service.adapters.milvus.index import MilvusIndex
from memory_service.adapters.sql.migrate import MIGRATIONS
from memory_service.adapters.sql.store import SqlMemoryStore, open_memory_store
from memory_service.domain.change import Change
from memory_service.domain.errors import IndexUnavailable
from memory_service.domain.model import Memory, MemoryStatus, Operation
from memory_service.ports import IndexFilter, RequestKey, Transaction
from memory_service.upkeep.reindex import Backfill, reindex
from memory_service.upkeep.relay import IndexRelay
from tests.builders.memories import NOW, memory
from tests.fakes.clock import FakeClock, FakeIds


class House:
    """One data folder, opened with one embedder."""

    def __init__(self, folder: Path, dims: int) -> None:
        self.clock = FakeClock(NOW)
        self.ids = FakeIds()
        url = f"sqlite:///{folder / 'memory.db'}"
        MIGRATIONS.upgrade(url)
        self.store: SqlMemoryStore = open_memory_store(url, clock=self.clock, new_id=self.ids)
        self.embedder = HashEmbedder(dims)
        self.index = MilvusIndex(
            MilvusAddress(str(folder / "milvus")),
            fingerprint=self.embedder.fingerprint,
            dims=dims,
            collections=self.store.collections,
            timeouts=Timeouts(search=10.0, write=30.0),
        )
        self.relay = IndexRelay(
            outbox=self.store.outbox, index=self.index, embedder=self.embedder, clock=self.clock
        )

    async def put(self, before: Memory | None, after: Memory) -> Memory:
        stored: list[Memory] = []

        def work(transaction: Transaction) -> bytes:
            operation = Operation.UPDATE if before else Operation.CREATE
            stored.append(
                transaction.put(
                    Change(operation=operation, actor="user", reason="", before=before, after=after)
                )
            )
            return b""

        key = RequestKey(f"{after.memory_id}{after.version}", "Test", b"")
        await self.store.writer.once(after.user_id, key, work)
        return stored[-1]

    async def search(self, words: str, limit: int = 5) -> list[str]:
        (vector,) = await self.embedder.embed_queries([words])
        wanted = IndexFilter(user_id="u1", now=NOW)
        return [hit.memory_id for hit in await self.index.search(vector, wanted, limit=limit)]


@asynccontextmanager
async def house(folder: Path, dims: int = 64) -> AsyncIterator[House]:
    opened = House(folder, dims)
    await opened.index.start()
    try:
        yield opened
    finally:
        await opened.index.close()
        await opened.embedder.close()
        opened.store.close()


async def test_what_is_written_is_found_and_what_is_deleted_is_not(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        tea = await home.put(None, memory("m1", "likes oolong tea"))
        await home.put(None, memory("m2", "owns a red car"))
        assert await home.relay.step() == 2
        assert (await home.search("oolong tea"))[0] == "m1"

        await home.put(tea, replace(tea, status=MemoryStatus.DELETED, version=2))
        await home.relay.step()
        assert await home.search("oolong tea") == ["m2"]
        assert await home.store.outbox.depth() == 0


async def test_another_embedder_reindexes_into_a_collection_of_its_own(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        for n in range(5):
            await home.put(None, memory(f"m{n}", f"fact number {n} about the user"))
        await home.relay.step()
    async with house(tmp_path, dims=128) as home:
        with pytest.raises(IndexUnavailable, match="reindexing"):
            await home.search("fact number 3")
        await home.put(None, memory("m9", "written meanwhile"))
        await home.relay.step()
        backfill = Backfill(
            collection=home.index.collection,
            collections=home.store.collections,
            outbox=home.store.outbox,
            index=home.index,
            embedder=home.embedder,
            batch=2,
        )
        steps = [progress async for progress in reindex(backfill)]
        assert (steps[-1].done, steps[-1].ready) == (6, True)
        assert set(await home.search("fact number 3", limit=10)) == {
            *(f"m{n}" for n in range(5)),
            "m9",
        }
    async with house(tmp_path) as home:
        assert len(await home.index.ids("u1")) == 5, "the old one was left alone"
        with pytest.raises(IndexUnavailable, match="reindexing"):  # it was not told of m9
            await home.search("fact number 3")
