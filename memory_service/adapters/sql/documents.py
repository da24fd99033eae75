"""The domain's objects as JSON documents: what history and jobs keep, and how it is read again.

Written: all fields by their names, times as ISO 8601. Read: a field that is not there takes its
default, so that what an older version wrote can be read.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from memory_service.domain.ingest import (
    Action,
    Candidate,
    Decision,
    IngestOutcome,
    Reason,
    Relation,
    Turn,
    TurnMessage,
)
from memory_service.domain.model import IndexState, Memory, MemoryStatus, MemoryType, Role

Document = dict[str, Any]


def document(value: Any) -> Document:
    """Give a dataclass of the domain as JSON."""
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def to_memory(kept: Mapping[str, Any]) -> Memory:
    """Read a memory."""
    return Memory(**_read(kept, _MEMORY))


def to_turn(kept: Mapping[str, Any]) -> Turn:
    """Read a turn."""
    return Turn(**_read(kept, _TURN))


def to_decision(kept: Mapping[str, Any]) -> Decision:
    """Read a decision."""
    return Decision(**_read(kept, _DECISION))


def to_outcome(kept: Mapping[str, Any]) -> IngestOutcome:
    """Read an outcome."""
    return IngestOutcome(**_read(kept, _OUTCOME))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return document(value)
    return dict(value) if isinstance(value, Mapping) else value


Readers = Mapping[str, Callable[[Any], Any]]


def _read(kept: Mapping[str, Any], readers: Readers) -> Document:
    return {
        name: readers[name](value) if name in readers else value for name, value in kept.items()
    }


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _type(word: str) -> MemoryType:
    return MemoryType(word) if word in set(MemoryType) else MemoryType.UNKNOWN


def _role(word: str | None) -> Role | None:
    return None if word is None else Role(word)


def _each(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: tuple(read(value) for value in values)


_MEMORY: Readers = {
    "memory_type": _type,
    "status": MemoryStatus,
    "index_state": IndexState,
    "event_ids": tuple,
    "role": _role,
    **dict.fromkeys(
        (
            "expire_time",
            "last_access_time",
            "create_time",
            "update_time",
            "occur_time",
        ),
        _time,
    ),
}
_MESSAGE: Readers = {"role": Role, "create_time": _time}
_TURN: Readers = {"messages": _each(lambda kept: TurnMessage(**_read(kept, _MESSAGE)))}
_CANDIDATE: Readers = {"relation": Relation}
_DECISION: Readers = {
    "fact": to_memory,
    "action": Action,
    "reason": Reason,
    "superseded_ids": tuple,
    "candidates": _each(lambda kept: Candidate(**_read(kept, _CANDIDATE))),
}
_OUTCOME: Readers = {"decisions": _each(to_decision), "warnings": tuple}
