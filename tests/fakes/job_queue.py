"""JobQueue and JobReader in memory."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from memory_service.domain.errors import LeaseLost
from memory_service.domain.ingest import Job, JobState
from memory_service.ports import ClaimedJob, JobFilter, NewId, QueueState
from memory_service.ports.jobs import LONGEST_PAUSE, WORKER_LOST
from tests.fakes.job_rows import JobRow, JobTable, held

_UNFINISHED = (JobState.RUNNING, JobState.PENDING)


class FakeJobQueue:
    """Over the tables that table() gives; call is told of each call, and may fail it."""

    def __init__(
        self,
        table: Callable[[], JobTable],
        *,
        new_id: NewId,
        attempts: int,
        call: Callable[[str], Awaitable[None]],
    ) -> None:
        self._jobs = table
        self._new_id = new_id
        self._attempts = attempts
        self._call = call

    # ------------------------------------------------------------ JobReader

    async def get(self, user_id: str, job_id: str) -> Job | None:
        await self._call("get_job")
        row = self._jobs().get(job_id)
        return row.shown() if row is not None and row.user_id == user_id else None

    async def page(
        self, user_id: str, wanted: JobFilter, *, before: int, limit: int
    ) -> Sequence[Job]:
        await self._call("page_of_jobs")
        found = [
            row.shown()
            for row in self._jobs().values()
            if row.user_id == user_id
            and (not before or row.job.seq < before)
            and _listed(wanted, row.job)
        ]
        return sorted(found, key=lambda job: job.seq, reverse=True)[:limit]

    # ------------------------------------------------------------ JobQueue

    async def claim(self, *, lease: float, now: datetime) -> ClaimedJob | None:
        await self._call("claim_job")
        end = now + timedelta(seconds=lease)
        latest = max(end, now + timedelta(seconds=LONGEST_PAUSE))
        while (row := self._first_due(now, latest)) is not None:
            table, job = self._jobs(), row.job
            lost = job.state is JobState.RUNNING
            if lost and row.due > latest:
                table[job.job_id] = replace(row, due=end)
            elif lost and job.attempt >= self._attempts:
                parked = replace(job, state=JobState.PARKED, last_error=WORKER_LOST)
                table[job.job_id] = replace(row, job=parked)
            else:
                taken = replace(
                    job,
                    state=JobState.RUNNING,
                    attempt=job.attempt + 1,
                    last_error=WORKER_LOST if lost else job.last_error,
                )
                token = self._new_id()
                table[job.job_id] = JobRow(job=taken, due=end, token=token)
                return ClaimedJob(job=taken, token=token)
        return None

    async def renew(self, claimed: ClaimedJob, *, lease: float, now: datetime) -> bool:
        await self._call("renew_job")
        try:
            row = held(self._jobs(), claimed)
        except LeaseLost:
            return False
        if row.job.state is not JobState.RUNNING:
            return row.job.state is JobState.DONE
        self._jobs()[row.job.job_id] = replace(row, due=now + timedelta(seconds=lease))
        return True

    async def give_back(
        self, claimed: ClaimedJob, *, error: str, retry_at: datetime, refund: bool
    ) -> JobState:
        await self._call("give_back_job")
        row = held(self._jobs(), claimed)
        if row.job.state is not JobState.RUNNING:
            return row.job.state
        last = row.job.attempt >= self._attempts
        job = replace(
            row.job,
            state=JobState.PARKED if last and not refund else JobState.PENDING,
            attempt=row.job.attempt - int(refund),
            outages=row.job.outages + 1 if refund else 0,
            last_error=error[:500],
        )
        self._jobs()[job.job_id] = replace(row, job=job, due=retry_at)
        return job.state

    async def state(self) -> QueueState:
        await self._call("state_of_jobs")
        jobs = [row.job for row in self._jobs().values()]
        states = [job.state for job in jobs]
        unfinished = [job.create_time for job in jobs if job.state.is_unfinished]
        return QueueState(
            pending=states.count(JobState.PENDING),
            running=states.count(JobState.RUNNING),
            parked=states.count(JobState.PARKED),
            oldest=min(unfinished, default=None),
        )

    def _first_due(self, now: datetime, latest: datetime) -> JobRow | None:
        """Give the next job of the user who waits longest, those with an impossible time first."""
        users = dict.fromkeys(row.user_id for row in self._jobs().values())
        nexts = [row for row in map(self._next, users) if row is not None]
        due = [row for row in nexts if row.due <= now or row.due > latest]
        return min(due, key=lambda row: (row.due <= latest, row.due), default=None)

    def _next(self, user_id: str) -> JobRow | None:
        rows = [row for row in self._jobs().values() if row.user_id == user_id]
        for state in _UNFINISHED:
            of_state = [row for row in rows if row.job.state is state]
            if of_state:
                return min(of_state, key=lambda row: row.job.seq)
        return None


def _listed(wanted: JobFilter, job: Job) -> bool:
    return (
        (not wanted.states or job.state in wanted.states)
        and (not wanted.conversation_id or wanted.conversation_id == job.turn.conversation_id)
        and (not wanted.turn_id or wanted.turn_id == job.turn.turn_id)
    )
