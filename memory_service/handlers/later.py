"""RPCs of the contract that this version does not offer yet: UNIMPLEMENTED, whatever is asked."""
# ruff: noqa: N802, ARG002 — names and parameters are those of gRPC

from typing import Any, NoReturn

import grpc

from memory_service.v1 import memory_pb2_grpc
from rpc.errors import Failure

Context = grpc.aio.ServicerContext[Any, Any]


def _not_yet(rpc: str) -> NoReturn:
    message = f"{rpc} is part of the contract, but this version does not offer it yet"
    raise Failure(grpc.StatusCode.UNIMPLEMENTED, "NOT_IMPLEMENTED", message)


class Later(memory_pb2_grpc.MemoryServiceServicer):
    """The RPCs to come; each goes from here when it does."""

    async def ListMemoryHistory(self, request: Any, context: Context) -> Any:
        """Refuse."""
        _not_yet("ListMemoryHistory")

    async def RevertMemory(self, request: Any, context: Context) -> Any:
        """Refuse."""
        _not_yet("RevertMemory")

    async def DryRunIngest(self, request: Any, context: Context) -> Any:
        """Refuse."""
        _not_yet("DryRunIngest")

    def WatchMemories(self, request: Any, context: Context) -> Any:
        """Refuse."""
        _not_yet("WatchMemories")
