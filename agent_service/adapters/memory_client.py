"""The memory service over gRPC."""

from datetime import timedelta
from typing import Any

import grpc

from agent_service.domain.errors import MemoryUnavailable, TurnRefused
from agent_service.domain.learning import TurnToLearn
from agent_service.domain.model import (
    MemoryType,
    Recall,
    RecalledMemory,
    RecallQuery,
    RecallSource,
    Role,
)
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc
from rpc.errors import read_failure

LEGS = ("pinned", "semantic", "keyword")
_UNREADABLE = "unreadable"
_CAUSES = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "timeout",
    grpc.StatusCode.UNAVAILABLE: "unavailable",
    grpc.StatusCode.UNAUTHENTICATED: "unauthenticated",
}
_TYPE_NUMBERS: dict[MemoryType, pb.MemoryType.ValueType] = {
    kind: pb.MemoryType.Value(f"MEMORY_TYPE_{kind.name}")
    for kind in MemoryType
    if kind is not MemoryType.UNKNOWN
}
_TYPES: dict[int, MemoryType] = {number: kind for kind, number in _TYPE_NUMBERS.items()}


_AWAY = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.CANCELLED,
        # A wrong token is a fault of the deployment, and of no turn.
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        # An older server, in the middle of an upgrade.
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""Codes that would be the same for any turn. All others are about the turn, INTERNAL and UNKNOWN
too: a turn that makes the server fail must not stop those of everybody else."""
_ROLES: dict[Role, pb.MessageRole.ValueType] = {
    Role.USER: pb.MESSAGE_ROLE_USER,
    Role.ASSISTANT: pb.MESSAGE_ROLE_ASSISTANT,
    Role.SYSTEM: pb.MESSAGE_ROLE_SYSTEM,
    Role.TOOL: pb.MESSAGE_ROLE_TOOL,
}


class MemoryClient:
    """A MemoryPort and a LearnTarget.

    cut is how strictly memories are held back: off, gate, tight or strict.
    """

    def __init__(self, channel: grpc.aio.Channel, *, cut: str) -> None:
        self._stub: Any = memory_pb2_grpc.MemoryServiceStub(channel)
        self._cut = pb.RetrieveCut.Value(f"RETRIEVE_CUT_{cut.upper()}")

    async def recall(self, query: RecallQuery, *, within: float) -> Recall:
        """Keep the promise of MemoryPort.recall."""
        try:
            answer = await self._stub.Retrieve(self._request(query), timeout=within)
        except grpc.aio.AioRpcError as error:
            cause = _CAUSES.get(error.code(), error.code().name.lower())
            return unreachable(cause, within=within)
        if answer is None:  # grpc.aio's way to say that the bytes did not parse
            return unreachable(_UNREADABLE, within=within)
        return _recall(answer)

    async def learn(self, turn: TurnToLearn, *, within: float) -> None:
        """Keep the promise of LearnTarget.learn."""
        try:
            answer = await self._stub.IngestTurn(_ingest_request(turn), timeout=within)
        except grpc.aio.AioRpcError as error:
            if error.code() in _AWAY:
                raise MemoryUnavailable(error.code().name.lower()) from None
            raise TurnRefused(_refusal(error)) from None
        if answer is None:  # as above; the turn may be stored there or not
            raise MemoryUnavailable(_UNREADABLE)

    def _request(self, query: RecallQuery) -> pb.RetrieveRequest:
        budgets = pb.TypeBudgets(**{kind.value: most for kind, most in query.budgets.items()})
        return pb.RetrieveRequest(
            user_id=query.user_id,
            query=query.text,
            conversation_id=query.conversation_id,
            memory_types=[_TYPE_NUMBERS[kind] for kind in query.memory_types],
            budgets=budgets,
            cut=self._cut,
            explain=True,
        )


def unreachable(cause: str, *, within: float) -> Recall:
    """Give what is known when memory did not answer: nothing, and why."""
    sources = tuple(
        RecallSource(leg=leg, state="failed", reason=cause, elapsed=timedelta(seconds=within))
        if cause == "timeout"
        else RecallSource(leg=leg, state="failed", reason=cause)
        for leg in LEGS
    )
    return Recall(sources=sources, degraded=True)


def _recall(answer: pb.RetrieveResponse) -> Recall:
    return Recall(
        items=tuple(_item(item) for item in answer.items),
        sources=tuple(_source(source) for source in answer.sources),
        degraded=answer.degraded,
        revision=answer.revision,
        stage_counts=dict(answer.stage_counts),
        dropped=dict(answer.dropped),
        pinned_total=answer.pinned_total,
        pinned_returned=answer.pinned_returned,
    )


def _item(item: pb.RetrievedMemory) -> RecalledMemory:
    return RecalledMemory(
        memory_id=item.memory.memory_id,
        memory_type=_TYPES.get(item.memory.memory_type, MemoryType.UNKNOWN),
        title=item.memory.title,
        content=item.memory.content,
        score=item.score,
        score_parts=dict(item.score_parts),
        legs=tuple(_word(pb.RetrieveLeg.Name, leg, "RETRIEVE_LEG_") for leg in item.legs),
    )


def _source(source: pb.RetrieveSource) -> RecallSource:
    return RecallSource(
        leg=_word(pb.RetrieveLeg.Name, source.leg, "RETRIEVE_LEG_"),
        state=_word(pb.SourceState.Name, source.state, "SOURCE_STATE_"),
        reason=source.reason,
        candidates=source.candidates,
        elapsed=source.elapsed.ToTimedelta(),
    )


def _word(name: Any, number: int, prefix: str) -> str:
    """Give an enum value as a word; empty if a newer server sent one that is unknown here."""
    try:
        word = str(name(number))
    except ValueError:
        return ""
    return word.removeprefix(prefix).lower()


def _ingest_request(turn: TurnToLearn) -> pb.IngestTurnRequest:
    request = pb.IngestTurnRequest(
        user_id=turn.user_id,
        request_id=turn.request_id,
        conversation_id=turn.conversation_id,
        turn_id=turn.turn_id,
    )
    for said in turn.messages:
        message = request.messages.add(
            role=_ROLES[said.role], content=said.content, timezone=said.timezone
        )
        message.create_time.FromDatetime(said.create_time)
    return request


def _refusal(error: grpc.aio.AioRpcError) -> str:
    """Give code, reason and field names; descriptions may quote what was said."""
    failure = read_failure(error)
    words = [failure.code.name, failure.reason, *(wrong.field for wrong in failure.violations)]
    return " ".join(dict.fromkeys(words))
