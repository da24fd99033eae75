"""The table of jobs in memory, and JobRows over it."""

from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from datetime import datetime

from memory_service.domain.errors import JobNotFound, JobNotParked, LeaseLost, RequestIdReused
from memory_service.domain.ingest import IngestOutcome, Job, JobState, Turn, wordless
from memory_service.ports import ClaimedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job, until when it rests or is lent, and the token of its last claim."""

    job: Job
    due: datetime
    token: str = ""

    @property
    def user_id(self) -> str:
        return self.job.turn.user_id

    def shown(self) -> Job:
        pending = self.job.state is JobState.PENDING
        return replace(self.job, next_attempt_time=self.due if pending else None)


JobTable = MutableMapping[str, JobRow]


def held(table: JobTable, claimed: ClaimedJob) -> JobRow:
    row = table.get(claimed.job.job_id)
    if row is None or row.token != claimed.token:
        raise LeaseLost
    return row


class FakeJobRows:
    """JobRows of one user."""

    def __init__(self, table: JobTable, user_id: str, revision: int) -> None:
        self._table = table
        self._user_id = user_id
        self._revision = revision

    def add(self, job_id: str, turn: Turn, request_id: str, now: datetime) -> Job:
        for row in self._table.values():
            if (row.user_id, row.job.request_id) == (self._user_id, request_id):
                if row.job.turn not in {turn, wordless(turn)}:
                    raise RequestIdReused
                return row.shown()
        job = Job(
            job_id=job_id, seq=self._revision, request_id=request_id, turn=turn, create_time=now
        )
        self._table[job_id] = JobRow(job=job, due=now)
        return self._table[job_id].shown()

    def get(self, job_id: str) -> Job | None:
        row = self._table.get(job_id)
        return row.shown() if row is not None and row.user_id == self._user_id else None

    def requeue(self, job_id: str, now: datetime) -> Job:
        job = self.get(job_id)
        if job is None:
            raise JobNotFound
        if job.state is not JobState.PARKED:
            raise JobNotParked
        again = replace(job, state=JobState.PENDING, attempt=0, outages=0)
        self._table[job_id] = JobRow(job=again, due=now)
        return self._table[job_id].shown()

    def is_held(self, claimed: ClaimedJob) -> bool:
        state = held(self._table, claimed).job.state
        if state not in {JobState.RUNNING, JobState.DONE}:
            raise LeaseLost
        return state is JobState.RUNNING

    def finish(self, claimed: ClaimedJob, outcome: IngestOutcome) -> None:
        if self.is_held(claimed):
            row = held(self._table, claimed)
            done = replace(
                row.job,
                turn=wordless(row.job.turn),
                state=JobState.DONE,
                outcome=outcome,
                last_error="",
            )
            self._table[row.job.job_id] = replace(row, job=done)
