"""A memory service that takes turns and holds its answers, in threads of this process."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from memory_service.v1 import memory_pb2 as pb


class HeldMemory:
    """told: what was handed over, in order; each call is answered once released is set."""

    def __init__(self) -> None:
        self.told: list[pb.IngestTurnRequest] = []
        self.released = threading.Event()
        self.address = ""
        self._heard = threading.Condition()

    def until_told(self, times: int, *, within: float = 60.0) -> list[pb.IngestTurnRequest]:
        """Wait until so many turns were handed over, doubles counted."""
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.told) >= times, within), self.told
            return list(self.told)

    def ingest(self, request: pb.IngestTurnRequest, _context: Any) -> pb.IngestTurnResponse:
        with self._heard:
            self.told.append(request)
            self._heard.notify_all()
        self.released.wait(120)
        return pb.IngestTurnResponse(job_id="j")


@contextmanager
def held_memory() -> Iterator[HeldMemory]:
    memory = HeldMemory()
    handlers: dict[str, Any] = {
        "IngestTurn": grpc.unary_unary_rpc_method_handler(
            memory.ingest,
            request_deserializer=pb.IngestTurnRequest.FromString,
            response_serializer=pb.IngestTurnResponse.SerializeToString,
        )
    }
    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("memory_service.v1.MemoryService", handlers),)
    )
    memory.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield memory
    finally:
        memory.released.set()
        server.stop(0).wait()
