"""The gates (domain.gate) as conditions of SQL, so that a refused row never leaves the database."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Integer, and_, bindparam, or_

from database.types import Key, UtcTime
from memory_service.adapters.sql.schema import ID, memories
from memory_service.domain.model import MemoryStatus, MemoryType, Role, UserSettings
from memory_service.ports import PinnedQuery

_KNOWN = frozenset(MemoryType) - {MemoryType.UNKNOWN}
_BEGINNING = datetime(1000, 1, 1, tzinfo=UTC)
"""The first moment that MySQL can store."""
_m = memories.c


def _switched(name: str) -> ColumnElement[bool]:
    return bindparam(name, type_=Integer) == 1


def _scoped(name: str) -> ColumnElement[bool]:
    wanted = bindparam(name, type_=Key(ID))
    return or_(wanted == "", _m[name] == "", _m[name] == wanted)


RECALLED = and_(_m.status == MemoryStatus.ACTIVE.value, _m.role != Role.ASSISTANT.value)
"""What may be recalled at all, and what the index is to hold: Memory.is_indexed."""

OPEN = and_(
    _m.user_id == bindparam("user_id"),
    RECALLED,
    or_(_m.expire_time.is_(None), _m.expire_time > bindparam("now", type_=UtcTime)),
    _m.update_time > bindparam("kept_after", type_=UtcTime),
    or_(_switched("implicit"), _m.is_explicit),
    or_(_switched("sensitive"), _m.sensitivity_level == 0),
    _scoped("assistant_id"),
    _scoped("run_id"),
)
"""All gates but the types, to be executed with gate_values. One text for all settings, so that it
is compiled once."""


def gate_values(wanted: PinnedQuery, settings: UserSettings) -> dict[str, Any]:
    """Give the values of OPEN."""
    return {
        "user_id": wanted.scope.user_id,
        "assistant_id": wanted.scope.assistant_id,
        "run_id": wanted.scope.run_id,
        "now": wanted.now,
        "kept_after": _kept_after(wanted.now, settings.retention),
        "implicit": int(settings.implicit_memory_enabled),
        "sensitive": int(settings.sensitive_memory_enabled),
    }


def _kept_after(now: datetime, retention: timedelta | None) -> datetime:
    if retention is None or retention >= now - _BEGINNING:
        return _BEGINNING
    return now - retention


def open_types(wanted: PinnedQuery, settings: UserSettings) -> frozenset[MemoryType]:
    """Give the types that are wanted and allowed; none when memory is off."""
    if not settings.memory_enabled:
        return frozenset()
    return (wanted.memory_types or _KNOWN) - settings.disabled_types


def of_types(types: Iterable[MemoryType]) -> ColumnElement[bool]:
    """Say that a row is of one of the types; words that nobody knows are facts."""
    chosen = frozenset(types)
    named = _m.memory_type.in_(sorted(word.value for word in chosen))
    if MemoryType.FACT not in chosen:
        return named
    return or_(named, _m.memory_type.not_in(sorted(word.value for word in _KNOWN)))
