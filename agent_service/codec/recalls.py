"""What a turn recalled ↔ MemoryUsed. Text of memories is no part of the message."""

from agent_service.codec.numbers import int32
from agent_service.domain.model import (
    MemoryType,
    MemoryUsed,
    Recall,
    RecalledMemory,
    RecallSource,
)
from agent_service.v1 import agent_pb2 as pb

TYPE_NUMBERS = {
    kind: pb.MEMORY_TYPE_UNSPECIFIED
    if kind is MemoryType.UNKNOWN
    else pb.MemoryType.Value(f"MEMORY_TYPE_{kind.name}")
    for kind in MemoryType
}
TYPE_OF_NUMBER: dict[int, MemoryType] = {number: kind for kind, number in TYPE_NUMBERS.items()}

_LEGS = {
    "pinned": pb.RETRIEVE_LEG_PINNED,
    "semantic": pb.RETRIEVE_LEG_SEMANTIC,
    "keyword": pb.RETRIEVE_LEG_KEYWORD,
}
_STATES = {
    "ok": pb.SOURCE_STATE_OK,
    "degraded": pb.SOURCE_STATE_DEGRADED,
    "skipped": pb.SOURCE_STATE_SKIPPED,
    "failed": pb.SOURCE_STATE_FAILED,
}
_LEG_OF = {number: leg for leg, number in _LEGS.items()}
_STATE_OF = {number: state for state, number in _STATES.items()}


def memory_used_message(used: MemoryUsed) -> pb.MemoryUsed:
    """Encode what was recalled; a leg or state that the wire has no word for is UNSPECIFIED."""
    recall = used.recall
    return pb.MemoryUsed(
        items=[_item_message(item) for item in recall.items],
        sources=[_source_message(source) for source in recall.sources],
        degraded=recall.degraded,
        revision=recall.revision,
        stage_counts={stage: int32(count) for stage, count in recall.stage_counts.items()},
        dropped={reason: int32(count) for reason, count in recall.dropped.items()},
        pinned_total=int32(recall.pinned_total),
        pinned_returned=int32(recall.pinned_returned),
    )


def memory_used_of(message: pb.MemoryUsed) -> MemoryUsed:
    """Decode what was recalled; titles and contents are empty, UNSPECIFIED is an empty word."""
    return MemoryUsed(
        Recall(
            items=tuple(_item_of(item) for item in message.items),
            sources=tuple(_source_of(source) for source in message.sources),
            degraded=message.degraded,
            revision=message.revision,
            stage_counts=dict(message.stage_counts),
            dropped=dict(message.dropped),
            pinned_total=message.pinned_total,
            pinned_returned=message.pinned_returned,
        )
    )


def _item_message(item: RecalledMemory) -> pb.UsedMemory:
    return pb.UsedMemory(
        memory_id=item.memory_id,
        memory_type=TYPE_NUMBERS[item.memory_type],
        score=item.score,
        score_parts=item.score_parts,
        legs=[_LEGS.get(leg, pb.RETRIEVE_LEG_UNSPECIFIED) for leg in item.legs],
    )


def _item_of(message: pb.UsedMemory) -> RecalledMemory:
    return RecalledMemory(
        memory_id=message.memory_id,
        memory_type=TYPE_OF_NUMBER.get(message.memory_type, MemoryType.UNKNOWN),
        title="",
        content="",
        score=message.score,
        score_parts=dict(message.score_parts),
        legs=tuple(_LEG_OF.get(leg, "") for leg in message.legs),
    )


def _source_message(source: RecallSource) -> pb.RetrieveSource:
    message = pb.RetrieveSource(
        leg=_LEGS.get(source.leg, pb.RETRIEVE_LEG_UNSPECIFIED),
        state=_STATES.get(source.state, pb.SOURCE_STATE_UNSPECIFIED),
        reason=source.reason,
        candidates=int32(source.candidates),
    )
    message.elapsed.FromTimedelta(source.elapsed)
    return message


def _source_of(message: pb.RetrieveSource) -> RecallSource:
    return RecallSource(
        leg=_LEG_OF.get(message.leg, ""),
        state=_STATE_OF.get(message.state, ""),
        reason=message.reason,
        candidates=message.candidates,
        elapsed=message.elapsed.ToTimedelta(),
    )
