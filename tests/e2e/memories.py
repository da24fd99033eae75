"""One user of a memory service, who calls it as any client does."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from uuid import uuid4

import grpc

from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc

FACT = pb.MEMORY_TYPE_FACT
CONSTRAINT = pb.MEMORY_TYPE_CONSTRAINT
PREFERENCE = pb.MEMORY_TYPE_PREFERENCE
PINNED, SEMANTIC, KEYWORD = (
    pb.RETRIEVE_LEG_PINNED,
    pb.RETRIEVE_LEG_SEMANTIC,
    pb.RETRIEVE_LEG_KEYWORD,
)
OK, DEGRADED, SKIPPED, FAILED = (
    pb.SOURCE_STATE_OK,
    pb.SOURCE_STATE_DEGRADED,
    pb.SOURCE_STATE_SKIPPED,
    pb.SOURCE_STATE_FAILED,
)

DEADLINE = 2.0
"""Of a Retrieve, unless a test says otherwise; the service takes at most 1.5 s."""
WRITE_DEADLINE = 30.0

_users = count()


class User:
    """Calls on behalf of a user of its own; each call has a deadline."""

    def __init__(self, stub: Any, user_id: str = "") -> None:
        self.stub = stub
        self.user_id = user_id or f"user-{next(_users)}"

    def create(
        self,
        content: str,
        kind: "pb.MemoryType.ValueType" = FACT,
        *,
        request_id: str = "",
        **fields: Any,
    ) -> pb.Memory:
        request = pb.CreateMemoryRequest(
            user_id=self.user_id,
            request_id=request_id or uuid4().hex,
            memory=pb.Memory(memory_type=kind, content=content, **fields),
        )
        answer = self.stub.CreateMemory(request, timeout=WRITE_DEADLINE)
        return answer.memory  # type: ignore[no-any-return]

    def create_all(self, memories: list[pb.Memory]) -> list[pb.Memory]:
        request = pb.BatchCreateMemoriesRequest(
            user_id=self.user_id, request_id=uuid4().hex, memories=memories
        )
        answer = self.stub.BatchCreateMemories(request, timeout=WRITE_DEADLINE)
        assert not [one.error for one in answer.results if one.HasField("error")]
        return [one.memory for one in answer.results]

    def delete(self, memory: pb.Memory) -> None:
        request = pb.DeleteMemoryRequest(
            user_id=self.user_id, request_id=uuid4().hex, memory_id=memory.memory_id
        )
        self.stub.DeleteMemory(request, timeout=WRITE_DEADLINE)

    def retrieve(
        self, query: str, *, timeout: float = DEADLINE, **fields: Any
    ) -> pb.RetrieveResponse:
        request = pb.RetrieveRequest(user_id=self.user_id, query=query, **fields)
        return self.stub.Retrieve(request, timeout=timeout)  # type: ignore[no-any-return]

    def listed(self) -> list[pb.Memory]:
        memories: list[pb.Memory] = []
        request = pb.ListMemoriesRequest(user_id=self.user_id, page_size=200)
        while True:
            page = self.stub.ListMemories(request, timeout=WRITE_DEADLINE)
            memories.extend(page.memories)
            if not page.next_page_token:
                return memories
            request.page_token = page.next_page_token

    def says(self, text: str) -> str:
        """Say something to be learnt from, and give the job's id."""
        said = pb.TurnMessage(role=pb.MESSAGE_ROLE_USER, content=text)
        said.create_time.GetCurrentTime()
        request = pb.IngestTurnRequest(
            user_id=self.user_id, request_id=uuid4().hex, conversation_id="c", messages=[said]
        )
        answer = self.stub.IngestTurn(request, timeout=WRITE_DEADLINE)
        return str(answer.job_id)

    def job(self, job_id: str) -> pb.IngestJob:
        request = pb.GetIngestJobRequest(user_id=self.user_id, job_id=job_id)
        answer = self.stub.GetIngestJob(request, timeout=WRITE_DEADLINE)
        return answer.job  # type: ignore[no-any-return]

    def index_states(self) -> dict[str, int]:
        request = pb.GetStatsRequest(user_id=self.user_id)
        stats = self.stub.GetStats(request, timeout=WRITE_DEADLINE)
        return {state: n for state, n in stats.memories_by_index_state.items() if n}


@contextmanager
def user_of(address: str, user_id: str = "", *, token: str = "") -> Iterator[User]:
    """Connect a user; a service that was killed and came back is found again at once."""
    options = (
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 500),
        ("grpc.use_local_subchannel_pool", 1),
    )
    channel = grpc.insecure_channel(address, options)
    if token:
        channel = grpc.intercept_channel(channel, _Token(token))
    with channel:
        yield User(memory_pb2_grpc.MemoryServiceStub(channel), user_id)


class _Token(grpc.UnaryUnaryClientInterceptor):
    def __init__(self, token: str) -> None:
        self._token = token

    def intercept_unary_unary(self, proceed: Any, details: Any, request: Any) -> Any:
        metadata = (*(details.metadata or ()), ("authorization", f"Bearer {self._token}"))
        return proceed(details._replace(metadata=metadata), request)


def contents(answer: pb.RetrieveResponse) -> list[str]:
    return [item.memory.content for item in answer.items]


def source(answer: pb.RetrieveResponse, leg: "pb.RetrieveLeg.ValueType") -> pb.RetrieveSource:
    (one,) = [source for source in answer.sources if source.leg == leg]
    return one


def legs(answer: pb.RetrieveResponse, memory: pb.Memory) -> set[int]:
    """Name the legs that found a memory; none if it is not there."""
    return {
        leg
        for item in answer.items
        if item.memory.memory_id == memory.memory_id
        for leg in item.legs
    }
