"""Retrieve: the request with the server's settings filled in, and the answer made to fit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from memory_service.codec.checks import MAX_BUDGET, MAX_QUERY_BYTES, Checks
from memory_service.codec.memories import MAX_ANSWER_BYTES, memory_message
from memory_service.codec.settings import duration
from memory_service.codec.words import CUTS, LEG_OF, LEG_STATE_OF, MEMORY_TYPES, MODES
from memory_service.domain.budget import within_bytes
from memory_service.domain.errors import InvalidRequest
from memory_service.domain.model import Scope
from memory_service.domain.recall import (
    Answer,
    Cut,
    Leg,
    Mode,
    Query,
    Ranked,
    Source,
    TypeBudgets,
)
from memory_service.v1 import memory_pb2 as pb

MAX_QUERIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveDefaults:
    """What holds where a request says nothing: the server's settings."""

    mode: Mode = Mode.HYBRID
    budgets: TypeBudgets = field(default_factory=TypeBudgets)
    min_relevance: float = 0.0
    cut: Cut = Cut.OFF


def retrieve_request(request: pb.RetrieveRequest, defaults: RetrieveDefaults) -> Query:
    """Read Retrieve. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    query = _query(check, "", request, user_id, defaults)
    check.passed()
    return query


def batch_retrieve_request(
    request: pb.BatchRetrieveRequest, defaults: RetrieveDefaults
) -> Sequence[Query | InvalidRequest]:
    """Read BatchRetrieve: each query, or what is wrong with it. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    check.count("requests", len(request.requests), 1, MAX_QUERIES)
    check.passed()
    return [
        _item(f"requests[{place}].", each, user_id, defaults)
        for place, each in enumerate(request.requests)
    ]


def _item(
    at: str, request: pb.RetrieveRequest, user_id: str, defaults: RetrieveDefaults
) -> Query | InvalidRequest:
    check = Checks()
    check.owner(f"{at}user_id", request.user_id, user_id)
    query = _query(check, at, request, user_id, defaults)
    try:
        check.passed()
    except InvalidRequest as refusal:
        return refusal
    return query


def _query(
    check: Checks, at: str, request: pb.RetrieveRequest, user_id: str, defaults: RetrieveDefaults
) -> Query:
    mode, cut, min_relevance = defaults.mode, defaults.cut, defaults.min_relevance
    if request.mode != pb.RETRIEVE_MODE_UNSPECIFIED:
        mode = check.word(f"{at}mode", request.mode, MODES)
    if request.cut != pb.RETRIEVE_CUT_UNSPECIFIED:
        cut = check.word(f"{at}cut", request.cut, CUTS)
    if request.HasField("min_relevance"):
        min_relevance = check.fraction(f"{at}min_relevance", request.min_relevance)
    return Query(
        scope=Scope(
            user_id=user_id,
            assistant_id=check.name(f"{at}assistant_id", request.assistant_id),
            run_id=check.name(f"{at}run_id", request.run_id),
        ),
        text=check.text(f"{at}query", request.query, MAX_QUERY_BYTES),
        conversation_id=check.name(f"{at}conversation_id", request.conversation_id),
        mode=mode,
        memory_types=check.words(f"{at}memory_types", request.memory_types, MEMORY_TYPES),
        budgets=_budgets(check, f"{at}budgets.", request.budgets, defaults.budgets),
        limit=check.count(f"{at}limit", request.limit, 0, MAX_BUDGET),
        token_budget=check.not_negative(f"{at}token_budget", request.token_budget),
        min_relevance=min_relevance,
        cut=cut,
        explain=request.explain,
        min_revision=check.not_negative(f"{at}min_revision", request.min_revision),
    )


def _budgets(check: Checks, at: str, message: pb.TypeBudgets, defaults: TypeBudgets) -> TypeBudgets:
    given = {
        name: check.count(f"{at}{name}", getattr(message, name), 0, MAX_BUDGET)
        for name in ("constraint", "preference", "todo_hint", "fact")
        if message.HasField(name)
    }
    return replace(defaults, **given)


def retrieve_response(answer: Answer, *, explain: bool) -> pb.RetrieveResponse:
    """Give an answer, without the lowest ranks that would take it to MAX_ANSWER_BYTES."""
    response = _response(answer, explain=explain)
    if response.ByteSize() <= MAX_ANSWER_BYTES:
        return response
    others = _response(replace(answer, items=()), explain=explain).ByteSize()
    explained = _DROPPED_BYTES * len(answer.items) if explain else _DROPPED_BYTES
    kept, lost = within_bytes(answer.items, MAX_ANSWER_BYTES - others - explained)
    fitting = replace(
        answer,
        items=kept,
        dropped=(*answer.dropped, *lost),
        stage_counts={**answer.stage_counts, "returned": len(kept)},
        pinned_returned=sum(item.candidate.pinned for item in kept),
    )
    return _response(fitting, explain=explain)


_DROPPED_BYTES = 192  # more than a dropped memory takes: its id and its reason


def _response(answer: Answer, *, explain: bool) -> pb.RetrieveResponse:
    response = pb.RetrieveResponse(
        items=[_item_message(item, explain=explain) for item in answer.items],
        sources=[_source_message(source) for source in answer.sources],
        degraded=answer.degraded,
        revision=answer.revision,
        stage_counts=answer.stage_counts,
        dropped=Counter(dropped.reason.value for dropped in answer.dropped),
        pinned_total=answer.pinned_total,
        pinned_returned=answer.pinned_returned,
    )
    if explain:
        response.dropped_memories.extend(
            pb.DroppedMemory(memory_id=dropped.memory_id, reason=dropped.reason.value)
            for dropped in answer.dropped
        )
    return response


def _item_message(item: Ranked, *, explain: bool) -> pb.RetrievedMemory:
    candidate = item.candidate
    return pb.RetrievedMemory(
        memory=memory_message(candidate.memory),
        score=item.score,
        score_parts=item.score_parts if explain else None,
        legs=[LEG_OF[leg] for leg in Leg if leg in candidate.legs],
        relevance_parts=candidate.relevance_parts if explain else None,
    )


def _source_message(source: Source) -> pb.RetrieveSource:
    return pb.RetrieveSource(
        leg=LEG_OF[source.leg],
        state=LEG_STATE_OF[source.state],
        reason=source.reason,
        candidates=source.candidates,
        elapsed=duration(source.elapsed),
    )
