"""What a write by hand asks for, and what it makes of a memory: plain rules, no storing."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from memory_service.domain.errors import DomainError, MemoryNotAllowed
from memory_service.domain.lifetime import end_of
from memory_service.domain.model import (
    Memory,
    MemoryStatus,
    MemoryType,
    Operation,
    Role,
    UserSettings,
)
from memory_service.domain.text import content_hash, default_title, normalize

CONFIDENCE_BY_HAND = 0.95
IMPORTANCE_BY_HAND = 0.90
EXPLICIT_BY_HAND = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What somebody wants remembered, already checked; an empty title takes the default."""

    user_id: str
    conversation_id: str = ""
    assistant_id: str = ""
    run_id: str = ""
    memory_type: MemoryType
    title: str = ""
    content: str
    confidence: float = CONFIDENCE_BY_HAND
    importance: float = IMPORTANCE_BY_HAND
    sensitivity_level: int = 0
    is_explicit: bool = EXPLICIT_BY_HAND
    expire_time: datetime | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    turn_id: str = ""
    event_ids: tuple[str, ...] = ()
    is_verbatim: bool = False
    speaker: str = ""
    occur_time: datetime | None = None
    role: Role | None = None

    def memory(self, memory_id: str, now: datetime) -> Memory:
        """Give the memory that this becomes if no equal one is there."""
        return Memory(
            memory_id=memory_id,
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            assistant_id=self.assistant_id,
            run_id=self.run_id,
            memory_type=self.memory_type,
            title=self.title or default_title(self.content),
            content=self.content,
            normalized_content=normalize(self.content),
            content_hash=content_hash(self.memory_type, self.content),
            confidence=self.confidence,
            importance=self.importance,
            sensitivity_level=self.sensitivity_level,
            is_explicit=self.is_explicit,
            expire_time=self.expire_time,
            metadata=self.metadata,
            turn_id=self.turn_id,
            event_ids=self.event_ids,
            create_time=now,
            update_time=now,
            is_verbatim=self.is_verbatim,
            speaker=self.speaker,
            occur_time=self.occur_time,
            role=self.role,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPatch:
    """New values of some fields of a memory, by their names in Memory, already checked.

    version is the one that was read. An empty title takes the default of the content.
    """

    memory_id: str
    version: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a memory to create: a new one, or an equal one that was refreshed."""

    memory: Memory
    created: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """Why one of many was not stored."""

    error: DomainError


Outcome = Stored | Refused


def check_allowed(settings: UserSettings, memory: Memory) -> None:
    """Raise MemoryNotAllowed unless the user's settings let this be stored."""
    if not settings.memory_enabled:
        message = "the user has switched memory off"
    elif not (settings.implicit_memory_enabled or memory.is_explicit):
        message = "the user allows explicit memories only"
    elif not settings.sensitive_memory_enabled and memory.sensitivity_level > 0:
        message = "the user allows no sensitive memories"
    elif memory.memory_type in settings.disabled_types:
        message = f"the user has switched off the type {memory.memory_type}"
    else:
        return
    raise MemoryNotAllowed(message)


def refreshed(memory: Memory, again: Memory) -> Memory:
    """Give the memory after it was said again, at again's time.

    The later expiry (none is the latest), the higher confidence and importance; explicit if either
    was. All else stays.
    """
    return replace(
        memory,
        expire_time=later_expiry(memory, again),
        confidence=max(memory.confidence, again.confidence),
        importance=max(memory.importance, again.importance),
        is_explicit=memory.is_explicit or again.is_explicit,
        update_time=again.update_time,
        version=memory.version + 1,
    )


def later_expiry(memory: Memory, again: Memory) -> datetime | None:
    """Give the later of two ends; none is the latest."""
    if memory.expire_time is None or again.expire_time is None:
        return None
    return max(memory.expire_time, again.expire_time)


def patched(memory: Memory, values: Mapping[str, Any], now: datetime) -> Memory:
    """Give the memory with these values and all others as they were.

    Nobody spoke what is no verbatim turn any more.
    """
    after: Memory = replace(memory, **values, update_time=now, version=memory.version + 1)
    return replace(
        after,
        title=after.title or default_title(after.content),
        normalized_content=normalize(after.content),
        content_hash=content_hash(after.memory_type, after.content),
        superseded_by="" if after.status is MemoryStatus.ACTIVE else after.superseded_by,
        role=after.role if after.is_verbatim else None,
    )


def with_status(memory: Memory, status: MemoryStatus, now: datetime) -> Memory:
    """Give the memory with another status; an active one is superseded by nothing."""
    return replace(
        memory,
        status=status,
        superseded_by="" if status is MemoryStatus.ACTIVE else memory.superseded_by,
        update_time=now,
        version=memory.version + 1,
    )


def restored(memory: Memory, now: datetime) -> Memory:
    """Give the memory active and found again; one that is both already is given itself."""
    if memory.status is MemoryStatus.ACTIVE and _lasting(memory, now) is memory:
        return memory
    return _lasting(with_status(memory, MemoryStatus.ACTIVE, now), now)


def deleted(memory: Memory, now: datetime) -> Memory:
    """Give the memory deleted; one that is already is given itself."""
    gone = MemoryStatus.DELETED
    return memory if memory.status is gone else with_status(memory, gone, now)


def _lasting(memory: Memory, now: datetime) -> Memory:
    """Give an active memory without an end that is past: the next sweep would delete it again."""
    if memory.status is not MemoryStatus.ACTIVE or end_of(memory, now=now, retention=None) is None:
        return memory
    return replace(memory, expire_time=None)


def superseded(memory: Memory, successor: Memory) -> Memory:
    """Give the memory once another one, at that one's time, has taken its place."""
    gone = with_status(memory, MemoryStatus.SUPERSEDED, successor.update_time)
    return replace(gone, superseded_by=successor.memory_id)


def reverted(memory: Memory, then: Memory, now: datetime) -> Memory:
    """Give the memory with the values and the status that it had then, as a new version.

    If it is active by that, it loses an expire_time that is past.
    """
    after = replace(
        then,
        last_access_time=memory.last_access_time,
        update_time=now,
        version=memory.version + 1,
    )
    return _lasting(after, now)


def counterpart(before: Memory, after: Memory, other: Memory) -> Memory | None:
    """Give what becomes of the other of two memories that replace each other; None: nothing.

    before and after are the one that goes back to a version: if it comes back, the other one makes
    way; if it goes again, the one that had made way for it comes back.
    """
    comes, goes = MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED
    change = (before.status, after.status, other.status)
    if change == (goes, comes, comes):
        return superseded(other, after)
    if change == (comes, goes, goes) and other.superseded_by == before.memory_id:
        return restored(other, after.update_time)
    return None


def operation_of(before: Memory, after: Memory) -> Operation:
    """Name a change by the status that it leads to, as history keeps it."""
    if before.status is after.status:
        return Operation.UPDATE
    return _LEADS_TO[after.status]


_LEADS_TO = {
    MemoryStatus.ACTIVE: Operation.RESTORE,
    MemoryStatus.ARCHIVED: Operation.ARCHIVE,
    MemoryStatus.SUPERSEDED: Operation.SUPERSEDE,
    MemoryStatus.DELETED: Operation.DELETE,
}
