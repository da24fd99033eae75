"""Turns while they run, and their end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agent_service.domain.context import ContextReport
from agent_service.domain.model import TurnEvent, TurnKey


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
