"""Between rows of SQL and the words of the domain."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from memory_service.adapters.sql.schema import memories, memory_user_states
from memory_service.adapters.sql.vectors import all_from_bytes
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    UserSettings,
    UserState,
)
from memory_service.domain.text import active_key, normalize
from memory_service.ports import StoredRow

Row = Sequence[Any]

MEMORY_COLUMNS = tuple(memories.c[field.name] for field in fields(Memory))
"""Named and ordered as the fields of Memory."""

STATE_COLUMNS = tuple(memory_user_states.c)

_TYPES = {word.value: word for word in MemoryType}
_STATUSES = {word.value: word for word in MemoryStatus}
_INDEX_STATES = {word.value: word for word in IndexState}
_MICROSECOND = timedelta(microseconds=1)


def memory_type(word: str) -> MemoryType:
    """Give the type; UNKNOWN for a word that this version does not know."""
    return _TYPES.get(word, MemoryType.UNKNOWN)


def to_memory(row: Row) -> Memory:
    """Read a row that begins with MEMORY_COLUMNS."""
    return Memory(
        memory_id=row[0],
        user_id=row[1],
        conversation_id=row[2],
        assistant_id=row[3],
        run_id=row[4],
        memory_type=_TYPES.get(row[5], MemoryType.UNKNOWN),
        title=row[6],
        content=row[7],
        normalized_content=row[8],
        content_hash=row[9],
        confidence=row[10],
        importance=row[11],
        sensitivity_level=row[12],
        is_explicit=row[13],
        status=_STATUSES[row[14]],
        superseded_by=row[15],
        expire_time=row[16],
        metadata=row[17],
        turn_id=row[18],
        event_ids=tuple(row[19]),
        last_access_time=row[20],
        create_time=row[21],
        update_time=row[22],
        version=row[23],
        revision=row[24],
        index_state=_INDEX_STATES[row[25]],
        is_verbatim=row[26],
        speaker=row[27],
        occur_time=row[28],
    )


def to_stored(rows: Sequence[Row]) -> list[StoredRow]:
    """Read rows of MEMORY_COLUMNS and an embedding's bytes."""
    vectors = all_from_bytes([row[-1] for row in rows])
    return [StoredRow(to_memory(row), vector) for row, vector in zip(rows, vectors, strict=True)]


def from_memory(memory: Memory) -> dict[str, Any]:
    """Give all columns that a change writes; not what the index was last told, which stays."""
    values: dict[str, Any] = {field.name: getattr(memory, field.name) for field in fields(Memory)}
    values["metadata"] = dict(memory.metadata)
    values["event_ids"] = list(memory.event_ids)
    values["normalized_title"] = normalize(memory.title)
    values["active_key"] = active_key(memory)
    return values


def to_json(memory: Memory) -> dict[str, Any]:
    """Give a memory as history keeps it: all fields, times as ISO 8601."""
    return {field.name: _plain(getattr(memory, field.name)) for field in fields(Memory)}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def to_state(user_id: str, row: Row | None) -> UserState:
    """Read a row of STATE_COLUMNS; without one, the defaults."""
    if row is None:
        return UserState(user_id=user_id)
    _, revision, enabled, implicit, sensitive, disabled, retention, verbatim, erased, erasure = row
    settings = UserSettings(
        memory_enabled=enabled,
        implicit_memory_enabled=implicit,
        sensitive_memory_enabled=sensitive,
        disabled_types=frozenset(memory_type(word) for word in disabled),
        retention=None if retention is None else retention * _MICROSECOND,
        verbatim_turns_enabled=verbatim,
    )
    return UserState(
        user_id=user_id,
        revision=revision,
        settings=settings,
        erase_time=erased,
        erase_revision=erasure,
    )


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
