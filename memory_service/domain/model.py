"""The words of memory: what a memory and a user's settings are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum


class MemoryType(StrEnum):
    """What a memory is; UNKNOWN only ever comes out of a store and counts as a fact."""

    CONSTRAINT = "constraint"
    PREFERENCE = "preference"
    TODO_HINT = "todo_hint"
    FACT = "fact"
    UNKNOWN = "unknown"


class MemoryStatus(StrEnum):
    """Where a memory is in its life."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    SUPERSEDED = "superseded"
    DELETED = "deleted"


class IndexState(StrEnum):
    """What the vector index knows of a memory."""

    PENDING = "pending"
    SYNCED = "synced"
    FAILED = "failed"
    REMOVED = "removed"


class Role(StrEnum):
    """Who speaks: the user, whose words alone become facts; the assistant, who is context.

    Words of the system and of tools are never read.
    """

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Operation(StrEnum):
    """What a change did to a memory."""

    CREATE = "create"
    UPDATE = "update"
    SUPERSEDE = "supersede"
    ARCHIVE = "archive"
    DELETE = "delete"
    RESTORE = "restore"
    ERASE = "erase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One durable statement about a user. Times are aware and UTC; empty string means none."""

    memory_id: str
    user_id: str
    conversation_id: str = ""
    assistant_id: str = ""
    run_id: str = ""
    memory_type: MemoryType
    title: str = ""
    content: str
    normalized_content: str
    content_hash: str
    confidence: float = 0.6
    importance: float = 0.5
    sensitivity_level: int = 0
    is_explicit: bool = False
    status: MemoryStatus = MemoryStatus.ACTIVE
    superseded_by: str = ""
    expire_time: datetime | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    turn_id: str = ""
    event_ids: tuple[str, ...] = ()
    last_access_time: datetime | None = None
    create_time: datetime
    update_time: datetime
    version: int = 1
    revision: int = 0
    index_state: IndexState = IndexState.PENDING
    is_verbatim: bool = False
    speaker: str = ""
    occur_time: datetime | None = None
    role: Role | None = None
    """Who spoke, of a verbatim turn: the user or the assistant; None: unknown."""

    @property
    def supports_only(self) -> bool:
        """Tell whether it is what the assistant said.

        Such a turn supports its neighbours by its words. It is never recalled, and so needs no
        embedding and no place in the index.
        """
        return self.role is Role.ASSISTANT

    @property
    def is_indexed(self) -> bool:
        """Tell whether the vector index is to hold it."""
        return self.status is MemoryStatus.ACTIVE and not self.supports_only


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSettings:
    """What a user allows. The defaults hold for a user who never set any."""

    memory_enabled: bool = True
    implicit_memory_enabled: bool = True
    sensitive_memory_enabled: bool = False
    disabled_types: frozenset[MemoryType] = frozenset()
    retention: timedelta | None = None
    verbatim_turns_enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UserState:
    """A user's settings and the number of the last change; revision 0: nothing was ever stored."""

    user_id: str
    revision: int = 0
    settings: UserSettings = UserSettings()
    erase_time: datetime | None = None
    erase_revision: int = 0
    """Revision of the last erasure: whatever was read before it is void."""
    purge_revision: int = 0
    """Revision of the last purge, after which rows are gone that no change names."""
    erasing: str = ""
    """The request_id of an erasure that has begun and not ended; nothing is stored until then."""

    @property
    def void_before(self) -> int:
        """Revision below which what was read may hold rows that are gone for good."""
        return max(self.erase_revision, self.purge_revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memories, and for which assistant and run; empty: whichever."""

    user_id: str
    assistant_id: str = ""
    run_id: str = ""
