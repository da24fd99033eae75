"""The sweeps, run by the worker of a real service."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.upkeep import sweeping
from memory_service.v1 import memory_pb2 as pb
from tests.integration.memory_service.conftest import Serve


async def test_the_worker_deletes_what_expired_and_mends_what_the_index_lost(
    serve_memory: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "FIRST_WAIT", 0.05)
    quick = {"expiry_every": 0.05, "reconcile_every": 0.05, "dedup_every": 0, "purge_every": 0}
    async with serve_memory(**quick) as server:
        expiry = Timestamp()
        expiry.FromDatetime(datetime.now(UTC) - timedelta(seconds=1))
        ids = []
        for content, expire_time in (("Over.", expiry), ("Likes tea.", None)):
            answer = await server.stub.CreateMemory(
                pb.CreateMemoryRequest(
                    user_id="u1",
                    request_id=content,
                    memory=pb.Memory(
                        memory_type=pb.MEMORY_TYPE_FACT, content=content, expire_time=expire_time
                    ),
                )
            )
            ids.append(answer.memory.memory_id)
        over, tea = ids
        index = server.app.index
        assert index is not None
        lost = False
        for _ in range(600):
            gone = await server.stub.GetMemory(pb.GetMemoryRequest(user_id="u1", memory_id=over))
            held = await index.ids("u1")
            if held == {tea} and not lost:
                await index.remove([tea])
                lost = True
            elif held == {tea} and gone.memory.status == pb.MEMORY_STATUS_DELETED:
                return
            await asyncio.sleep(0.05)
        pytest.fail("the worker did not sweep")
