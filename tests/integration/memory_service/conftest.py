"""A memory server in this process, on loopback, with SQLite and milvus-lite in a folder."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from memory_service.app import MemoryApp, migrate, open_app, server_settings
from memory_service.ports import Clock
from memory_service.settings import Settings
from memory_service.v1 import memory_pb2_grpc
from rpc.ids import utc_now
from rpc.server import start


@dataclass(frozen=True)
class MemoryServer:
    """A running server: call it by stub, look into it by app."""

    app: MemoryApp
    stub: Any
    channel: grpc.aio.Channel
    address: str


LONG = "." * 16_000
"""Nearly as long as a content may be, and without a word, so that the embedder has no work."""

Serve = Callable[..., AbstractAsyncContextManager[MemoryServer]]


@pytest.fixture
def serve_memory(tmp_path: Path) -> Serve:
    """Give a way to serve with chosen settings; the same folder each time."""

    @asynccontextmanager
    async def serve(*, clock: Clock = utc_now, **knobs: Any) -> AsyncIterator[MemoryServer]:
        chosen: dict[str, Any] = {
            "data_dir": tmp_path,
            "embedder": "hash",
            "listen": "127.0.0.1:0",
            # A busy machine must not make an answer degraded.
            "milvus_timeout": 10,
            "semantic_timeout": 10,
            "retrieve_timeout": 20,
        }
        settings = Settings(**chosen | knobs)
        migrate(settings)
        async with open_app(settings, clock=clock) as app, app.worker.running():
            server = await start(server_settings(settings), app.service, ready=app.ready)
            address = f"127.0.0.1:{server.port}"
            try:
                async with grpc.aio.insecure_channel(address) as channel:
                    stub = memory_pb2_grpc.MemoryServiceStub(channel)
                    yield MemoryServer(app=app, stub=stub, channel=channel, address=address)
            finally:
                await server.stop(0)

    return serve


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def database_knobs(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Give the settings of each database in turn."""
    if request.param == "sqlite":
        return {}
    return {"database_url": request.getfixturevalue("mariadb_server").url()}


@pytest.fixture
async def memory_server_on_sqlite(serve_memory: Serve) -> AsyncIterator[MemoryServer]:
    """Serve with the same on SQLite alone, for what is the same on every database."""
    async with serve_memory() as server:
        yield server


@pytest.fixture
async def memory_server(
    serve_memory: Serve, database_knobs: dict[str, Any]
) -> AsyncIterator[MemoryServer]:
    """Serve with the defaults, but for the embedder, the one without a model; on each database."""
    async with serve_memory(**database_knobs) as server:
        yield server
