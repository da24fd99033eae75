"""Memories, settings and scopes with values that a test need not care about."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Role,
    Scope,
)
from memory_service.domain.text import content_hash, normalize

NOW = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)
SCOPE = Scope(user_id="u1")


def memory(
    memory_id: str = "m1",
    content: str | None = None,
    *,
    memory_type: MemoryType = MemoryType.FACT,
    user_id: str = "u1",
    confidence: float = 0.6,
    importance: float = 0.5,
    age: timedelta = timedelta(0),
    status: MemoryStatus = MemoryStatus.ACTIVE,
    is_explicit: bool = False,
    sensitivity_level: int = 0,
    expire_time: datetime | None = None,
    conversation_id: str = "",
    assistant_id: str = "",
    run_id: str = "",
    turn_id: str = "",
    title: str = "",
    is_verbatim: bool = False,
    speaker: str = "",
    occur_time: datetime | None = None,
    role: Role | None = None,
    version: int = 1,
    revision: int = 0,
    index_state: IndexState = IndexState.PENDING,
    metadata: Mapping[str, object] | None = None,
) -> Memory:
    """Build a memory that is consistent in itself; content defaults to one of its own."""
    words = f"Content of {memory_id}." if content is None else content
    return Memory(
        memory_id=memory_id,
        user_id=user_id,
        conversation_id=conversation_id,
        assistant_id=assistant_id,
        run_id=run_id,
        memory_type=memory_type,
        title=title,
        content=words,
        normalized_content=normalize(words),
        content_hash=content_hash(memory_type, words),
        confidence=confidence,
        importance=importance,
        sensitivity_level=sensitivity_level,
        is_explicit=is_explicit,
        status=status,
        expire_time=expire_time,
        metadata=metadata or {},
        turn_id=turn_id,
        create_time=NOW - age,
        update_time=NOW - age,
        version=version,
        revision=revision,
        index_state=index_state,
        is_verbatim=is_verbatim,
        speaker=speaker,
        occur_time=occur_time,
        role=role,
    )
