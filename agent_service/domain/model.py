"""The words of a conversation: turns, messages, memories recalled, events of a turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from agent_service.domain.context import ContextReport


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message as a model reads it."""

    role: Role
    content: str


class ConversationStatus(StrEnum):
    """Where a conversation is in its life."""

    ACTIVE = "active"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a conversation is; belongs to (user_id, conversation_id)."""

    user_id: str
    conversation_id: str
    title: str = ""
    message_count: int = 0
    last_message_time: datetime | None = None
    status: ConversationStatus = ConversationStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class TurnKey:
    """Which turn of which conversation of which user; all three must fit."""

    user_id: str
    conversation_id: str
    turn_id: str


# ---------------------------------------------------------------- what memory answered


class MemoryType(StrEnum):
    """What a memory is; as in memory_service."""

    CONSTRAINT = "constraint"
    PREFERENCE = "preference"
    TODO_HINT = "todo_hint"
    FACT = "fact"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """One memory that a turn recalled. legs and states below are the proto words, lower case."""

    memory_id: str
    memory_type: MemoryType
    title: str
    content: str
    score: float = 0.0
    score_parts: Mapping[str, float] = field(default_factory=dict)
    legs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSource:
    """What one leg of memory did: state ok, degraded, skipped or failed."""

    leg: str
    state: str
    reason: str = ""
    candidates: int = 0
    elapsed: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What memory answered, also when it did not: then degraded, every leg failed with a reason."""

    items: Sequence[RecalledMemory] = ()
    sources: Sequence[RecallSource] = ()
    degraded: bool = False
    revision: int = 0
    stage_counts: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    pinned_total: int = 0
    pinned_returned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What to recall; a budget of None is the memory service's own."""

    user_id: str
    conversation_id: str
    text: str
    memory_types: tuple[MemoryType, ...] = ()
    budgets: Mapping[MemoryType, int] = field(default_factory=dict)


# ---------------------------------------------------------------- what a user asks


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """A checked ChatRequest; empty and 0 mean the server's setting."""

    user_id: str
    conversation_id: str
    """Empty: a new conversation."""
    client_message_id: str
    message: str
    """Not blank; without NUL."""
    model: str = ""
    thinking: str = ""
    """off, on or auto."""
    max_output_tokens: int = 0
    timezone: str = ""
    """An IANA name or an offset such as +08:00. Empty: UTC."""
    memory_types: tuple[MemoryType, ...] = ()
    memory_budgets: Mapping[MemoryType, int] = field(default_factory=dict)
    locale: str = ""
    digest: bytes
    """Tells one body from another; client_message_id and request_id are no part of it."""
    request_id: str


# ---------------------------------------------------------------- the events of a turn


@dataclass(frozen=True, slots=True)
class Started:
    """First: the user's message is stored."""

    conversation_id: str
    turn_id: str
    request_id: str
    conversation_created: bool


@dataclass(frozen=True, slots=True)
class MemoryUsed:
    """What was recalled, also if nothing was."""

    recall: Recall


@dataclass(frozen=True, slots=True)
class ContextAssembled:
    """What a model call is given."""

    report: ContextReport


@dataclass(frozen=True, slots=True)
class Delta:
    """More of the answer, whole characters."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingSummary:
    """What the model thinks about, in short; never its own words."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What all model calls of the turn used, as the model says."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Last: the turn failed; text is safe to show."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """Last: the turn ended."""

    finish_reason: str
    incomplete: bool = False
    actual_prompt_tokens: int | None = None


Event = Started | MemoryUsed | ContextAssembled | ThinkingSummary | Delta | Usage | Failed | Done


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """An event with its place in the turn, from 1 without gaps."""

    seq: int
    event: Event

    @property
    def last(self) -> bool:
        """Tell whether the turn is over after it."""
        return isinstance(self.event, Failed | Done)
