"""Learning from those turns only that may be learnt from."""

from datetime import datetime
from typing import Protocol

from memory_service.domain.ingest import IngestOutcome, why_not_learnt
from memory_service.domain.model import MemoryType, Scope, UserState
from memory_service.ports import ClaimedJob, Clock, MemoryReader, MemoryWriter, PinnedQuery


class Learns(Protocol):
    """Learns from the turn of a job, and finishes the job in the transaction that applies it.

    Raises LeaseLost if another worker took the job; StoreUnavailable, ModelUnavailable,
    EmbedderUnavailable or IndexUnavailable if something is away; anything else if this turn cannot
    be learnt from. Nothing is changed then.
    """

    async def learn(self, claimed: ClaimedJob) -> None:
        """Do it."""
        ...


async def user_state(reader: MemoryReader, user_id: str, now: datetime) -> UserState:
    """Give a user's settings and revision. Raises StoreUnavailable."""
    # Facts are never pinned: this reads no rows.
    asked = PinnedQuery(
        scope=Scope(user_id=user_id), now=now, memory_types=frozenset({MemoryType.FACT})
    )
    view = await reader.view(asked)
    return view.state


class WhereAllowed:
    """Learns: ends a job at once if the user's settings or an erasure forbid it."""

    def __init__(
        self, learner: Learns, reader: MemoryReader, writer: MemoryWriter, *, clock: Clock
    ) -> None:
        self._learner = learner
        self._reader = reader
        self._writer = writer
        self._clock = clock

    async def learn(self, claimed: ClaimedJob) -> None:
        """See Learns. The reason is the outcome's only warning."""
        turn = claimed.job.turn
        state = await user_state(self._reader, turn.user_id, self._clock())
        reason = why_not_learnt(state, turn)
        if not reason:
            await self._learner.learn(claimed)
            return
        outcome = IngestOutcome(warnings=(reason,))
        await self._writer.change(turn.user_id, lambda tx: tx.jobs.finish(claimed, outcome))
