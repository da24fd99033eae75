"""Conversations as users read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agent_service.domain.context import ContextReport
from agent_service.domain.model import (
    ContextAssembled,
    Conversation,
    ConversationStatus,
    Failed,
    MemoryUsed,
    Role,
    ThinkingSummary,
)


@dataclass(frozen=True, slots=True)
class UserSaid:
    """What the user said."""

    text: str


@dataclass(frozen=True, slots=True)
class AssistantSaid:
    """What the assistant said."""

    text: str
    incomplete: bool


TimelineKind = UserSaid | AssistantSaid | MemoryUsed | ContextAssembled | ThinkingSummary | Failed
"""What a timeline keeps: UserSaid and AssistantSaid stand for messages, the rest is of turns."""


@dataclass(frozen=True, slots=True)
class StoredTimelineEvent:
    """One thing that happened in a conversation."""

    seq: int
    turn_id: str
    create_time: datetime
    event: TimelineKind | None
    """None: a newer version wrote a kind that this one does not know."""


@dataclass(frozen=True, slots=True)
class ContextStats:
    """The report of the last model call and the sums over all turns."""

    last_report: ContextReport | None
    turns: int
    total_tokens: int
    actual_prompt_tokens: int
    dropped: int
    truncated: int


@dataclass(frozen=True, slots=True)
class DialogueMessage:
    """A message of the dialogue as stored."""

    role: Role
    text: str
    incomplete: bool
    create_time: datetime


class ConversationStore(Protocol):
    """Conversations as read by users. Raises StoreUnavailable, ConversationNotFound."""

    async def meta(self, user_id: str, conversation_id: str) -> Conversation:
        """Give what the conversation is."""
        ...

    async def page(
        self,
        user_id: str,
        *,
        status: ConversationStatus | None,
        before: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[Conversation]:
        """Give conversations by last_message_time desc, id desc, after that place."""
        ...

    async def timeline(
        self,
        user_id: str,
        conversation_id: str,
        *,
        after: int | None,
        before: int | None,
        limit: int,
    ) -> Sequence[StoredTimelineEvent]:
        """Give events in seq order: the first with seq > after, or the last with seq < before."""
        ...

    async def recent_messages(
        self, user_id: str, conversation_id: str, *, before_turn: str, limit: int
    ) -> Sequence[DialogueMessage]:
        """Give the newest messages before that turn, oldest first; empty answers are not stored."""
        ...

    async def context_stats(self, user_id: str, conversation_id: str) -> ContextStats:
        """Give how much context was used."""
        ...

    async def set_title_if_empty(self, user_id: str, conversation_id: str, title: str) -> None:
        """Give a conversation its title, unless it has one."""
        ...
