"""Turns that wait to be learnt from, and who learns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from agent_service.domain.learning import TurnToLearn

LONGEST_WAIT = timedelta(seconds=60)
"""Most that anybody lets a turn wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTurn:
    """A turn under a lease. attempt counts this claim; token fences a relay whose lease ran out."""

    turn: TurnToLearn
    attempt: int
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxState:
    """How many turns wait and how many are parked, and when the oldest that waits was stored."""

    pending: int
    parked: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTurn:
    """A turn that was refused too often; error is a code and names of fields, no text of anyone."""

    user_id: str
    conversation_id: str
    turn_id: str
    attempt: int
    error: str
    create_time: datetime


class LearnOutbox(Protocol):
    """Turns that the memory service has to be told. Raises StoreUnavailable.

    A user's turns have the order in which they ended, that is, in which the transactions that
    stored their ends were committed: also those of different conversations. They are claimed in
    that order, one at a time, and a later one only after the earlier one is delivered or parked.
    Users do not wait for each other.
    """

    async def claim(self, *, limit: int, lease: timedelta, now: datetime) -> Sequence[ClaimedTurn]:
        """Take the next turn of up to limit users, those that are due longest.

        Nobody else gets a turn of these users until it is settled or the lease has run out. A claim
        counts as an attempt, so that one that ends its relay is not tried for ever. What is
        due later than twice LONGEST_WAIT and lease was set by a clock that was ahead: due now.
        """
        ...

    async def delivered(self, claimed: ClaimedTurn, *, now: datetime) -> bool:
        """Note that a turn was accepted, and forget what was said in it: the timeline has it.

        False, and nothing is changed, if the lease is lost and nobody else noted it.
        """
        ...

    async def give_back(
        self, claimed: ClaimedTurn, *, error: str, retry_at: datetime, refund: bool
    ) -> bool:
        """Let a turn wait, and its user's later ones with it; refund: it was no attempt.

        False, and nothing is changed, if the lease is lost.
        """
        ...

    async def park(self, claimed: ClaimedTurn, *, error: str, now: datetime) -> bool:
        """Put a turn aside until somebody retries it; the user's later ones go on.

        False, and nothing is changed, if the lease is lost.
        """
        ...

    async def state(self) -> OutboxState:
        """Count what waits, leased or not, and what is parked."""
        ...

    async def forget(self, *, before: datetime, limit: int) -> int:
        """Forget delivered turns that were stored before that time; give how many were."""
        ...


class ParkedTurns(Protocol):
    """Turns that somebody must look after. Raises StoreUnavailable."""

    async def parked(self, *, limit: int) -> Sequence[ParkedTurn]:
        """Give the oldest parked turns, oldest first."""
        ...

    async def retry(self, turn_id: str, *, now: datetime) -> bool:
        """Let a parked turn be tried again, before its user's later ones; False: none is parked.

        Its attempts are counted anew.
        """
        ...


class LearnTarget(Protocol):
    """Who learns from turns: the memory service."""

    async def learn(self, turn: TurnToLearn, *, within: float) -> None:
        """Hand a turn over; when this returns it is stored there. Twice is as good as once.

        Raises MemoryUnavailable if nobody can be told now, within seconds; TurnRefused if this very
        turn is not accepted.
        """
        ...
