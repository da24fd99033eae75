"""The worker that learns from turns that wait, made as the settings say."""

from datetime import timedelta

from memory_service.adapters.sql.store import SqlMemoryStore
from memory_service.consolidate.allowed import Learns, WhereAllowed
from memory_service.consolidate.worker import JobSettings, JobWorker, Watch
from memory_service.ports import Clock, QueueState
from memory_service.settings import Settings
from memory_service.worker import JOB_LEASES_LOST, JOBS_LAG, JOBS_PARKED, JOBS_PENDING


def make_job_worker(
    settings: Settings, store: SqlMemoryStore, learner: Learns, clock: Clock
) -> JobWorker:
    """Give what takes turns from the queue."""
    return JobWorker(
        queue=store.queue,
        learner=WhereAllowed(learner, store.reader, store.writer, clock=clock),
        clock=clock,
        settings=JobSettings(
            concurrency=settings.job_concurrency,
            lease=settings.job_lease,
            poll=settings.job_poll,
            timeout=settings.job_timeout,
        ),
        watch=Watch(on_state=_show, on_lost=JOB_LEASES_LOST.inc),
    )


def _show(state: QueueState, lag: timedelta) -> None:
    JOBS_PENDING.set(state.pending)
    JOBS_PARKED.set(state.parked)
    JOBS_LAG.set(lag.total_seconds())
