"""The queue: one user's next job at a time, for one worker at a time.

Whoever changes a user's jobs holds the user's lock, the row in memory_user_states, and notes there
when the next one is due (job_rows.plan). A claim takes the first due row that nobody holds, so what
it costs does not depend on how many jobs wait. On SQLite writers are serial anyway.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, Select, bindparam, func, select

from database.access import Database
from database.types import UtcTime
from memory_service.adapters.sql.job_rows import (
    DONE,
    JOB,
    JOB_COLUMNS,
    PARKED,
    PENDING,
    RUNNING,
    JobRow,
    held_job,
    next_job,
    plan,
    set_job,
    to_job,
)
from memory_service.adapters.sql.schema import memory_jobs, memory_user_states
from memory_service.domain.errors import LeaseLost
from memory_service.domain.ingest import Job, JobState
from memory_service.ports import ClaimedJob, JobFilter, NewId, QueueState
from memory_service.ports.jobs import LONGEST_PAUSE, WORKER_LOST

_ERROR_CHARACTERS = 500

_j = memory_jobs.c
_s = memory_user_states.c
_free = (
    select(_s.user_id)
    # Without the index a server might sort, and would lock all that it sorts.
    .with_hint(memory_user_states, "FORCE INDEX (ix_memory_user_states_next_job)", "mysql")
    .limit(1)
    .with_for_update(skip_locked=True)
)
DUE = _free.where(_s.next_job_time <= bindparam("now", type_=UtcTime)).order_by(_s.next_job_time)
AHEAD = _free.where(_s.next_job_time > bindparam("latest", type_=UtcTime)).order_by(
    _s.next_job_time.desc()
)
LOCK = select(_s.user_id).where(_s.user_id == bindparam("user_id")).with_for_update()
PAGE = (
    select(*JOB_COLUMNS)
    .where(_j.user_id == bindparam("user_id"))
    .order_by(_j.seq.desc())
    .limit(bindparam("rows"))
)
WAITING = (
    select(_j.state, func.count(), func.min(_j.create_time, type_=UtcTime))
    .where(_j.state.in_((PENDING, RUNNING, PARKED)))
    .group_by(_j.state)
)


class SqlJobReader:
    """JobReader."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, user_id: str, job_id: str) -> Job | None:
        """See JobReader."""
        values = {"user_id": user_id, "job_id": job_id}
        row = await self._database.read(lambda connection: connection.execute(JOB, values).first())
        return None if row is None else to_job(row)

    async def page(
        self, user_id: str, wanted: JobFilter, *, before: int, limit: int
    ) -> Sequence[Job]:
        """See JobReader."""
        statement = _filtered(wanted)
        if before:
            statement = statement.where(_j.seq < before)
        values = {"user_id": user_id, "rows": limit}
        rows = await self._database.read(
            lambda connection: connection.execute(statement, values).all()
        )
        return [to_job(row) for row in rows]


class SqlJobQueue:
    """JobQueue; attempts: how many a job has before it is parked."""

    def __init__(self, database: Database, *, new_id: NewId, attempts: int) -> None:
        self._database = database
        self._new_id = new_id
        self._attempts = attempts

    async def claim(self, *, lease: float, now: datetime) -> ClaimedJob | None:
        """See JobQueue."""
        token = self._new_id()
        return await self._database.write(
            lambda connection: _Claim(connection, token, now, lease, self._attempts).made()
        )

    async def renew(self, claimed: ClaimedJob, *, lease: float, now: datetime) -> bool:
        """See JobQueue."""

        def work(connection: Connection) -> bool:
            row = _locked(connection, claimed)
            if row.state != RUNNING:
                return bool(row.state == DONE)
            set_job(connection, row.job_id, due_time=now + timedelta(seconds=lease))
            plan(connection, claimed.job.turn.user_id)
            return True

        try:
            return await self._database.write(work, repeatable=True)
        except LeaseLost:
            return False

    async def give_back(
        self, claimed: ClaimedJob, *, error: str, retry_at: datetime, refund: bool
    ) -> JobState:
        """See JobQueue; only the first 500 characters of error are kept."""
        last = claimed.job.attempt >= self._attempts

        def work(connection: Connection) -> JobState:
            row = _locked(connection, claimed)
            if row.state != RUNNING:
                return JobState(row.state)
            state = JobState.PARKED if last and not refund else JobState.PENDING
            set_job(
                connection,
                row.job_id,
                state=state.value,
                attempt=row.attempt - int(refund),
                outages=row.outages + 1 if refund else 0,
                due_time=retry_at,
                last_error=error[:_ERROR_CHARACTERS],
            )
            plan(connection, claimed.job.turn.user_id)
            return state

        return await self._database.write(work, repeatable=True)

    async def state(self) -> QueueState:
        """See JobQueue."""
        rows = await self._database.read(lambda connection: connection.execute(WAITING).all())
        count = {state: number for state, number, _ in rows}
        stored = [time for state, _, time in rows if state != PARKED]
        return QueueState(
            pending=count.get(PENDING, 0),
            running=count.get(RUNNING, 0),
            parked=count.get(PARKED, 0),
            oldest=min(stored, default=None),
        )


class _Claim:
    """One claim, in its transaction."""

    def __init__(
        self, connection: Connection, token: str, now: datetime, lease: float, attempts: int
    ) -> None:
        self._connection = connection
        self._token = token
        self._now = now
        self._lease_end = now + timedelta(seconds=lease)
        self._latest = max(self._lease_end, now + timedelta(seconds=LONGEST_PAUSE))
        self._attempts = attempts

    def made(self) -> ClaimedJob | None:
        """Give the first job that is due; None if there is none."""
        while True:
            # Ahead first: behind a queue that never ends they would wait as long.
            user_id = self._connection.scalar(AHEAD, {"latest": self._latest})
            user_id = user_id or self._connection.scalar(DUE, {"now": self._now})
            if user_id is None:
                return None
            row = self._due_job(user_id)
            if row is not None:
                self._lend(row)
            plan(self._connection, user_id)
            if row is not None:
                its = {"user_id": user_id, "job_id": row.job_id}
                job = to_job(self._connection.execute(JOB, its).one())
                return ClaimedJob(job=job, token=self._token)

    def _due_job(self, user_id: str) -> JobRow | None:
        """Give the user's next job if it is due; one whose last attempt was lost is parked."""
        while (row := next_job(self._connection, user_id)) is not None:
            if row.state == RUNNING and row.due_time > self._latest:
                # Its worker may be alive, and then renews the lease by the clock of now.
                set_job(self._connection, row.job_id, due_time=self._lease_end)
                return None
            if self._now < row.due_time <= self._latest:
                return None
            if row.state == PENDING or row.attempt < self._attempts:
                return row
            set_job(self._connection, row.job_id, state=PARKED, last_error=WORKER_LOST)
        return None

    def _lend(self, row: JobRow) -> None:
        error = WORKER_LOST if row.state == RUNNING else row.last_error
        set_job(
            self._connection,
            row.job_id,
            state=RUNNING,
            attempt=row.attempt + 1,
            due_time=self._lease_end,
            token=self._token,
            last_error=error,
        )


def _locked(connection: Connection, claimed: ClaimedJob) -> JobRow:
    """Take the user's lock and give the job's row. Raises LeaseLost."""
    connection.execute(LOCK, {"user_id": claimed.job.turn.user_id})
    return held_job(connection, claimed)


def _filtered(wanted: JobFilter) -> Select[*tuple[object, ...]]:
    statement = PAGE
    if wanted.states:
        statement = statement.where(_j.state.in_(sorted(word.value for word in wanted.states)))
    if wanted.conversation_id:
        statement = statement.where(_j.conversation_id == wanted.conversation_id)
    if wanted.turn_id:
        statement = statement.where(_j.turn_id == wanted.turn_id)
    return statement
