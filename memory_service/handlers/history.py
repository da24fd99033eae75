"""RPCs of what happened to memories."""
# ruff: noqa: N802, ARG002 — names and parameters are those of gRPC

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import grpc

from memory_service.codec import history
from memory_service.remember.history import History
from memory_service.remember.watch import Watch
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc
from rpc.drain import shutting_down

Context = grpc.aio.ServicerContext[Any, Any]


class HistoryHandlers(memory_pb2_grpc.MemoryServiceServicer):
    """One RPC = decode, use case, encode. Domain errors pass through, see failures."""

    def __init__(self, past: History, watch: Watch) -> None:
        self._past = past
        self._watch = watch

    async def ListMemoryHistory(
        self, request: pb.ListMemoryHistoryRequest, context: Context
    ) -> pb.ListMemoryHistoryResponse:
        """Give a page, newest first."""
        page = history.list_history_request(request)
        changes = await self._past.page(
            page.user_id, page.memory_id, before=page.before, size=page.size
        )
        return history.list_history_response(changes, page)

    async def RevertMemory(
        self, request: pb.RevertMemoryRequest, context: Context
    ) -> pb.RevertMemoryResponse:
        """Bring a memory back to a version."""
        wanted, key = history.revert_request(request)
        kept = await self._past.revert(
            wanted.user_id, wanted.memory_id, wanted.version, key, history.revert_answer
        )
        return pb.RevertMemoryResponse.FromString(kept)

    async def WatchMemories(
        self, request: pb.WatchMemoriesRequest, context: Context
    ) -> AsyncGenerator[pb.WatchMemoriesResponse, None]:
        """Stream revisions until the caller leaves, or the server stops."""
        user_id, after = history.watch_request(request)
        async with aclosing(self._watch.revisions(user_id, after)) as revisions:
            async for revision in revisions:
                yield history.watch_response(revision.number, revision.changes)
        raise shutting_down()
