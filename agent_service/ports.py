"""What the use cases need from the outside world, as Protocols.

Every port has a fake in tests/fakes and at least one adapter; all pass the same contract suite.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
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
    Message,
    Recall,
    RecallQuery,
    Role,
    ThinkingSummary,
    TurnEvent,
    TurnKey,
)

Clock = Callable[[], datetime]
"""Gives now, aware and in UTC."""

NewId = Callable[[], str]
"""Gives an id that sorts after those given before in this process and is never used twice."""


class MemoryPort(Protocol):
    """The memory service, as the agent sees it."""

    async def recall(self, query: RecallQuery, *, within: float) -> Recall:
        """Find memories within seconds.

        Never raises for an outage: that is a degraded Recall with its reasons.
        """
        ...


# ---------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a model shall answer; empty and 0 mean the adapter's own setting."""

    model: str = ""
    thinking: str = ""
    max_output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelText:
    """More of the answer, whole characters, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelReasoning:
    """The model is thinking; its words stay inside the adapter, chars says how much it thought."""

    chars: int


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What the call used, as the model counted."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ModelFinish:
    """The end: stop, length, content_filter or tool_calls; exactly one comes, last."""

    reason: str


ModelEvent = ModelText | ModelReasoning | ModelUsage | ModelFinish


class Model(Protocol):
    """A chat model. Closing the generator closes the call."""

    def stream(
        self, messages: Sequence[Message], options: ModelOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        """Answer. Raises ModelUnavailable or ModelRefused, also in the middle."""
        ...


# ---------------------------------------------------------------- conversations


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """A user's message that asks for a turn. digest tells one body from another."""

    user_id: str
    conversation_id: str
    conversation_is_new: bool
    """The caller gave no conversation_id; it was made for this turn."""
    client_message_id: str
    digest: bytes
    turn_id: str
    request_id: str
    text: str
    timezone: str = ""
    """Zone of relative dates in text, for the learning from it. Empty: UTC."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLease:
    """The right to run a turn; token fences a process that lost it."""

    user_id: str
    conversation_id: str
    turn_id: str
    token: str

    @property
    def key(self) -> TurnKey:
        """Say which turn it holds."""
        return TurnKey(self.user_id, self.conversation_id, self.turn_id)


@dataclass(frozen=True, slots=True)
class TurnOpened:
    """The turn is ours and its message is stored; seq 1, started, is stored too."""

    lease: TurnLease
    started: TurnEvent


@dataclass(frozen=True, slots=True)
class TurnKnown:
    """The client_message_id was seen before with the same body: this is its turn."""

    conversation_id: str
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnClosing:
    """All that the end of a turn stores, in one transaction."""

    events: Sequence[TurnEvent]
    """Not stored yet, the last one is Failed or Done."""
    answer: str
    incomplete: bool
    report: ContextReport | None
    now: datetime


@dataclass(frozen=True, slots=True)
class DialogueMessage:
    """A message of the dialogue as stored."""

    role: Role
    text: str
    incomplete: bool
    create_time: datetime


class TurnStore(Protocol):
    """Turns: leases, events, and the closing transaction. Raises StoreUnavailable.

    One turn of a conversation runs at a time, held by a lease row. Whoever finds a lease that ran
    out closes that turn first: partial answer kept as incomplete, error event TURN_LOST.
    """

    async def open(self, turn: NewTurn) -> TurnOpened | TurnKnown:
        """Store the user's message with its timeline event, take the lease, store started.

        Raises TurnRunning while another turn of the conversation runs, ClientMessageIdReused when
        the id stands for another body. Two first turns of a new conversation make one conversation.
        """
        ...

    async def append(self, lease: TurnLease, events: Sequence[TurnEvent]) -> None:
        """Store events in order. Raises LeaseLost."""
        ...

    async def heartbeat(self, lease: TurnLease, now: datetime) -> bool:
        """Prolong the lease and tell whether the turn shall be cancelled. Raises LeaseLost."""
        ...

    async def close(self, lease: TurnLease, closing: TurnClosing) -> None:
        """Store all that a turn leaves behind, in one transaction, and give the lease back.

        That is: events, assistant's message (unless empty), timeline, context stats, and the
        outbox row that asks to learn from the turn. Raises LeaseLost.
        """
        ...

    async def cancel(self, user_id: str, conversation_id: str, turn_id: str, now: datetime) -> bool:
        """Set the cancel flag; False if the turn had ended. Raises TurnNotFound."""
        ...

    async def events(
        self, user_id: str, conversation_id: str, turn_id: str, *, after_seq: int, now: datetime
    ) -> Sequence[TurnEvent]:
        """Give stored events by seq. Closes an expired turn first. Raises TurnNotFound."""
        ...

    async def close_expired(self, now: datetime, *, limit: int) -> int:
        """Close turns that nobody meets again, oldest first, and give how many were closed."""
        ...

    async def forget(self, *, before: datetime, limit: int) -> int:
        """Forget turns that ended before that time, oldest first, and give how many were.

        They cannot be resumed any more and their client_message_ids are free again; timeline,
        messages and what shall be learnt stay.
        """
        ...


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
