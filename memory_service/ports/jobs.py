"""The queue of turns to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memory_service.domain.ingest import IngestOutcome, Job, JobState, Turn


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
    """Hands jobs to workers. Raises StoreUnavailable when SQL does not answer."""

    async def claim(self, *, lease: float, now: datetime) -> ClaimedJob | None:
        """Take a user's oldest unfinished job for lease seconds; None if none is due.

        Never one of a user whose oldest job is running under a lease or not due yet. A claim
        counts as an attempt. A job whose lease ran out after its last attempt is parked here.
        """
        ...

    async def renew(self, claimed: ClaimedJob, *, lease: float, now: datetime) -> bool:
        """Hold on to a job for lease seconds from now; False if the lease is lost."""
        ...

    async def give_back(
        self, claimed: ClaimedJob, *, error: str, retry_at: datetime, refund: bool
    ) -> JobState:
        """Let go of a job that was not finished, and give the state it is in then.

        refund: an outage, so the attempt does not count. Otherwise the job is parked after its
        last attempt. Nothing changes if the lease is lost.
        """
        ...

    async def state(self) -> QueueState:
        """Count what waits."""
        ...


class JobRows(Protocol):
    """A user's jobs inside a write transaction: Transaction.jobs. Plain calls."""

    def add(self, turn: Turn, request_id: str, now: datetime) -> Job:
        """Store a job that is pending; its seq is the transaction's revision."""
        ...

    def get(self, job_id: str) -> Job | None:
        """Give this user's job."""
        ...

    def requeue(self, job_id: str, now: datetime) -> Job:
        """Make a parked job pending, attempts at 0."""
        ...

    def finish(self, claimed: ClaimedJob, outcome: IngestOutcome) -> None:
        """Say that a job is done. Raises LeaseLost if another worker took it."""
        ...
