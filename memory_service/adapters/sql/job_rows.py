"""A user's jobs, under the user's lock, and when the next of them may be claimed."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, insert, select, update

from memory_service.adapters.sql.documents import document, to_outcome, to_turn
from memory_service.adapters.sql.schema import memory_jobs, memory_user_states
from memory_service.domain.errors import JobNotFound, JobNotParked, LeaseLost, RequestIdReused
from memory_service.domain.ingest import IngestOutcome, Job, JobState, Turn, wordless
from memory_service.ports import ClaimedJob

JobRow = Row[*tuple[Any, ...]]
"""One that begins with JOB_COLUMNS."""

PENDING, RUNNING = JobState.PENDING.value, JobState.RUNNING.value
DONE, PARKED = JobState.DONE.value, JobState.PARKED.value

_j = memory_jobs.c
_s = memory_user_states.c
_of_user = _j.user_id == bindparam("user_id")

JOB_COLUMNS: tuple[ColumnElement[Any], ...] = (
    _j.job_id,
    _j.seq,
    _j.request_id,
    _j.turn,
    _j.state,
    _j.attempt,
    _j.outages,
    _j.due_time,
    _j.last_error,
    _j.outcome,
    _j.create_time,
)
JOB = select(*JOB_COLUMNS, _j.token).where(_of_user, _j.job_id == bindparam("job_id"))
BY_REQUEST = select(*JOB_COLUMNS).where(_of_user, _j.request_id == bindparam("request_id"))
FIRST = (
    select(*JOB_COLUMNS)
    .where(_of_user, _j.state == bindparam("its_state"))
    .order_by(_j.seq)
    .limit(1)
)
ADD = insert(memory_jobs)
SET = update(memory_jobs).where(_j.job_id == bindparam("its_id"))
PLAN = (
    update(memory_user_states)
    .where(_s.user_id == bindparam("owner"))
    .values(next_job_time=bindparam("at", type_=_s.next_job_time.type))
)


def to_job(row: JobRow) -> Job:
    """Read a row."""
    job_id, seq, request_id, turn, state, attempt, outages, due, error, outcome, created = row[:11]
    return Job(
        job_id=job_id,
        seq=seq,
        request_id=request_id,
        turn=to_turn(turn),
        state=JobState(state),
        attempt=attempt,
        outages=outages,
        next_attempt_time=due if state == PENDING else None,
        last_error=error,
        outcome=None if outcome is None else to_outcome(outcome),
        create_time=created,
    )


def next_job(connection: Connection, user_id: str) -> JobRow | None:
    """Give a user's next job: the one that runs, else the oldest pending one.

    An older job that was queued again does not overtake one that runs.
    """
    for state in (RUNNING, PENDING):
        row = connection.execute(FIRST, {"user_id": user_id, "its_state": state}).first()
        if row is not None:
            return row
    return None


def plan(connection: Connection, user_id: str) -> None:
    """Note when the user's next job may be claimed.

    To be called after every change of a user's jobs, in the same transaction, which holds the
    user's lock: a claim looks at nothing else to find a user.
    """
    row = next_job(connection, user_id)
    at = None if row is None else row.due_time
    connection.execute(PLAN, {"owner": user_id, "at": at})


def set_job(connection: Connection, job_id: str, **values: Any) -> None:
    """Change columns of a job."""
    connection.execute(SET, {"its_id": job_id, **values})


def held_job(connection: Connection, claimed: ClaimedJob) -> JobRow:
    """Give the row of a claimed job. Raises LeaseLost if it was claimed again, or is gone."""
    job = claimed.job
    values = {"user_id": job.turn.user_id, "job_id": job.job_id}
    row = connection.execute(JOB, values).first()
    if row is None or row.token != claimed.token:
        raise LeaseLost
    return row


class SqlJobRows:
    """JobRows."""

    def __init__(self, connection: Connection, user_id: str, revision: int) -> None:
        self._connection = connection
        self._user_id = user_id
        self._revision = revision

    def add(self, job_id: str, turn: Turn, request_id: str, now: datetime) -> Job:
        """See JobRows."""
        request = {"user_id": self._user_id, "request_id": request_id}
        row = self._connection.execute(BY_REQUEST, request).first()
        if row is not None:
            if to_turn(row.turn) not in {turn, wordless(turn)}:
                raise RequestIdReused
            return to_job(row)
        job = Job(
            job_id=job_id,
            seq=self._revision,
            request_id=request_id,
            turn=turn,
            next_attempt_time=now,
            create_time=now,
        )
        self._connection.execute(ADD, _columns(job) | request | {"due_time": now, "token": ""})
        plan(self._connection, self._user_id)
        return job

    def get(self, job_id: str) -> Job | None:
        """See JobRows."""
        values = {"user_id": self._user_id, "job_id": job_id}
        row = self._connection.execute(JOB, values).first()
        return None if row is None else to_job(row)

    def requeue(self, job_id: str, now: datetime) -> Job:
        """See JobRows."""
        job = self.get(job_id)
        if job is None:
            raise JobNotFound
        if job.state is not JobState.PARKED:
            raise JobNotParked
        set_job(
            self._connection,
            job_id,
            state=PENDING,
            attempt=0,
            outages=0,
            due_time=now,
            token="",
        )
        plan(self._connection, self._user_id)
        again = self.get(job_id)
        assert again is not None  # noqa: S101 — for the type checker: the user is locked
        return again

    def is_held(self, claimed: ClaimedJob) -> bool:
        """See JobRows."""
        state = held_job(self._connection, claimed).state
        if state not in {RUNNING, DONE}:
            raise LeaseLost
        return bool(state == RUNNING)

    def finish(self, claimed: ClaimedJob, outcome: IngestOutcome) -> None:
        """See JobRows."""
        if self.is_held(claimed):
            set_job(
                self._connection,
                claimed.job.job_id,
                state=DONE,
                turn=document(wordless(claimed.job.turn)),
                outcome=document(outcome),
                last_error="",
            )
            plan(self._connection, self._user_id)


def _columns(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "seq": job.seq,
        "conversation_id": job.turn.conversation_id,
        "turn_id": job.turn.turn_id,
        "turn": document(job.turn),
        "state": job.state.value,
        "attempt": job.attempt,
        "outages": job.outages,
        "last_error": job.last_error,
        "outcome": None,
        "create_time": job.create_time,
    }
