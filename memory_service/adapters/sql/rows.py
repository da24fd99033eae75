"""Between rows of SQL and the words of the domain."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

from memory_service.adapters.sql.schema import memories, memory_user_states
from memory_service.adapters.sql.vectors import all_from_bytes
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Role,
    UserSettings,
    UserState,
)
from memory_service.domain.text import active_key, normalize
from memory_service.ports import StoredRow

Row = Sequence[Any]

MEMORY_COLUMNS = tuple(memories.c[field.name] for field in fields(Memory))
"""Named and ordered as the fields of Memory."""

STATE_COLUMNS = tuple(c for c in memory_user_states.c if c.name != "next_job_time")
"""Those of UserState; when a job is due is the queue's own matter."""

_TYPES = {word.value: word for word in MemoryType}
_STATUSES = {word.value: word for word in MemoryStatus}
_INDEX_STATES = {word.value: word for word in IndexState}
_ROLES = {word.value: word for word in Role}
_NAMES = tuple(field.name for field in fields(Memory))
_PUT = tuple(getattr(Memory, name).__set__ for name in _NAMES)
"""The slots of Memory, written without its __init__: of a frozen class that takes two thirds of the
time in which 5,000 rows are read."""
_TYPE, _STATUS = _NAMES.index("memory_type"), _NAMES.index("status")
_INDEX_STATE, _EVENTS = _NAMES.index("index_state"), _NAMES.index("event_ids")
_ROLE = _NAMES.index("role")
_PUT_TYPE, _PUT_STATUS = _PUT[_TYPE], _PUT[_STATUS]
_PUT_INDEX_STATE, _PUT_EVENTS, _PUT_ROLE = _PUT[_INDEX_STATE], _PUT[_EVENTS], _PUT[_ROLE]
_MICROSECOND = timedelta(microseconds=1)


def memory_type(word: str) -> MemoryType:
    """Give the type; UNKNOWN for a word that this version does not know."""
    return _TYPES.get(word, MemoryType.UNKNOWN)


def to_memory(row: Row) -> Memory:
    """Read a row that begins with MEMORY_COLUMNS."""
    memory = object.__new__(Memory)
    for put, value in zip(_PUT, row, strict=False):
        put(memory, value)
    _PUT_TYPE(memory, _TYPES.get(row[_TYPE], MemoryType.UNKNOWN))
    _PUT_STATUS(memory, _STATUSES[row[_STATUS]])
    _PUT_INDEX_STATE(memory, _INDEX_STATES[row[_INDEX_STATE]])
    _PUT_EVENTS(memory, tuple(row[_EVENTS]))
    _PUT_ROLE(memory, _ROLES.get(row[_ROLE]))
    return memory


def to_stored(rows: Sequence[Row]) -> list[StoredRow]:
    """Read rows of MEMORY_COLUMNS and an embedding's bytes."""
    vectors = all_from_bytes([row[-1] for row in rows])
    return [StoredRow(to_memory(row), vector) for row, vector in zip(rows, vectors, strict=True)]


def from_memory(memory: Memory) -> dict[str, Any]:
    """Give all columns that a change writes; not what the index was last told, which stays."""
    values: dict[str, Any] = {field.name: getattr(memory, field.name) for field in fields(Memory)}
    values["metadata"] = dict(memory.metadata)
    values["event_ids"] = list(memory.event_ids)
    values["role"] = memory.role or ""
    values["normalized_title"] = normalize(memory.title)
    values["active_key"] = active_key(memory)
    values["delete_time"] = memory.update_time if memory.status is MemoryStatus.DELETED else None
    return values


def to_state(user_id: str, row: Row | None) -> UserState:
    """Read a row of STATE_COLUMNS; without one, the defaults."""
    if row is None:
        return UserState(user_id=user_id)
    _, revision, enabled, implicit, sensitive, disabled, retention, verbatim, *marks = row
    erase_time, erase_revision, purge_revision, erasing = marks
    settings = UserSettings(
        memory_enabled=enabled,
        implicit_memory_enabled=implicit,
        sensitive_memory_enabled=sensitive,
        disabled_types=frozenset(memory_type(word) for word in disabled),
        retention=None if retention is None else to_retention(retention),
        verbatim_turns_enabled=verbatim,
    )
    return UserState(
        user_id=user_id,
        revision=revision,
        settings=settings,
        erase_time=erase_time,
        erase_revision=erase_revision,
        purge_revision=purge_revision,
        erasing=erasing,
    )


def to_retention(microseconds: int) -> timedelta:
    """Read a retention that is set."""
    return microseconds * _MICROSECOND


def from_settings(settings: UserSettings) -> dict[str, Any]:
    """Give the columns of settings."""
    return {
        "memory_enabled": settings.memory_enabled,
        "implicit_memory_enabled": settings.implicit_memory_enabled,
        "sensitive_memory_enabled": settings.sensitive_memory_enabled,
        "disabled_types": sorted(settings.disabled_types),
        "retention": None if settings.retention is None else settings.retention // _MICROSECOND,
        "verbatim_turns_enabled": settings.verbatim_turns_enabled,
    }


def batches(ids: Iterable[str], size: int = 500) -> Iterable[list[str]]:
    """Cut ids, each once and in order, into lists that a database takes in one IN (...)."""
    ordered = sorted(set(ids))
    return (ordered[start : start + size] for start in range(0, len(ordered), size))
