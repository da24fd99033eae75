"""The queue of turns to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memory_service.domain.ingest import IngestOutcome, Job, JobState, Turn

LONGEST_PAUSE = 60.0
"""Most seconds until a job is tried again; what lies further ahead was set by a wrong clock."""


WORKER_LOST = "WORKER_LOST"
"""last_error of a job whose lease ran out: its worker died, or lost SQL for longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedJob:
    """A job under a lease; token fences a worker whose lease ran out. job.attempt counts it."""

    job: Job
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """What ListIngestJobs asks for; empty means all."""

    states: frozenset[JobState] = frozenset()
    conversation_id: str = ""
    turn_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """How many jobs there are of all users, and when the oldest unfinished one was stored."""

    pending: int
    running: int
    parked: int
    oldest: datetime | None


class JobReader(Protocol):
    """Reads a user's jobs. Raises StoreUnavailable when SQL does not answer."""

    async def get(self, user_id: str, job_id: str) -> Job | None:
        """Give this user's job."""
        ...

    async def page(
        self, user_id: str, wanted: JobFilter, *, before: int, limit: int
    ) -> Sequence[Job]:
        """Give jobs by seq desc with a seq below before (0: from the start)."""
        ...


class JobQueue(Protocol):
    """Hands jobs to workers. Raises StoreUnavailable when SQL does not answer.

    Of a user at most one job is running; the next is the oldest pending one, and no later job
    overtakes it. A user whose next job is not due, or whom another transaction holds, is passed
    over and keeps nobody else waiting.
    """

    async def claim(self, *, lease: float, now: datetime) -> ClaimedJob | None:
        """Take some user's next job for lease seconds; None if none is due.

        A job is due when its pause is over, or the lease of the worker that held it. A claim counts
        as an attempt; a job whose lease ran out in its last one is parked here. After a clock that
        was ahead was set right, no pause ends later than it would have, and no lease later than
        lease seconds from now.
        """
        ...

    async def renew(self, claimed: ClaimedJob, *, lease: float, now: datetime) -> bool:
        """Hold on to a job for lease seconds from now; False if the lease is lost.

        Of a job that was finished under this lease meanwhile nothing is lost.
        """
        ...

    async def give_back(
        self, claimed: ClaimedJob, *, error: str, retry_at: datetime, refund: bool
    ) -> JobState:
        """Let go of a job, not to be tried before retry_at, and give the state it is in then.

        refund: something was away, so the attempt does not count. Otherwise the job is parked after
        its last attempt. A job that this claim finished stays done. Raises LeaseLost if another
        worker took the job, or it is gone; nothing changes then.
        """
        ...

    async def state(self) -> QueueState:
        """Count what waits."""
        ...


class JobRows(Protocol):
    """A user's jobs inside a write transaction: Transaction.jobs. Plain calls."""

    def add(self, job_id: str, turn: Turn, request_id: str, now: datetime) -> Job:
        """Store a job that is pending; its seq is the transaction's revision.

        A request_id that has a job already, however old, has no other: that one is given. Raises
        RequestIdReused if it is about another turn.
        """
        ...

    def get(self, job_id: str) -> Job | None:
        """Give this user's job."""
        ...

    def requeue(self, job_id: str, now: datetime) -> Job:
        """Make a parked job pending, attempts at 0. Raises JobNotFound and JobNotParked."""
        ...

    def is_held(self, claimed: ClaimedJob) -> bool:
        """Tell whether the job is still to be finished under this claim.

        False: this claim finished it, and the transaction is being run again: leave all as it is.
        Raises LeaseLost if another worker took the job, or it is gone.
        """
        ...

    def finish(self, claimed: ClaimedJob, outcome: IngestOutcome) -> None:
        """Say that a job is done; nothing if it is. Raises LeaseLost as is_held does."""
        ...
