"""The worker of the queue: takes turns that wait, has them learnt from, and lets go of failures."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from memory_service.consolidate.allowed import Learns
from memory_service.consolidate.lease import work_under_lease
from memory_service.consolidate.outages import Outages, pause
from memory_service.domain.errors import (
    DomainError,
    EmbedderUnavailable,
    IndexUnavailable,
    LeaseLost,
    ModelUnavailable,
    StoreUnavailable,
)
from memory_service.ports import ClaimedJob, Clock, JobQueue, QueueState
from rpc.faults import place_of

_AWAY = (StoreUnavailable, ModelUnavailable, EmbedderUnavailable, IndexUnavailable)
"""Outages: nobody's fault, and no attempt of the job."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Durations in seconds.

    The lease bounds how long a dead worker is waited for; a living one renews it, so timeout bounds
    how long a job may take. goodbye bounds giving back what is held when the worker is stopped.
    """

    concurrency: int = 4
    lease: float = 30.0
    poll: float = 0.5
    timeout: float = 300.0
    goodbye: float = 2.0
    report_every: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who hears what the worker sees: what waits, and how old the oldest is; a lease was lost."""

    on_state: Callable[[QueueState, timedelta], object] = lambda _state, _lag: None
    on_lost: Callable[[], object] = lambda: None


class JobWorker:
    """Learns from turns of several users at once, those of one user one by one; see run.

    Any number of workers may run beside each other.
    """

    def __init__(
        self,
        *,
        queue: JobQueue,
        learner: Learns,
        clock: Clock,
        settings: JobSettings | None = None,
        watch: Watch | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue = queue
        self._learner = learner
        self._clock = clock
        self._settings = settings or JobSettings()
        self._watch = watch or Watch()
        self._monotonic = monotonic
        self._outages = Outages(monotonic)
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_round: float | None = None
        self._last_report: float | None = None

    def notify(self) -> None:
        """Say that a job was stored, so that it need not wait for the next poll."""
        self._wake.set()

    def stalled(self) -> bool:
        """Tell whether the loop has not come round for too long; not before it first ran."""
        if self._last_round is None:
            return False
        patience = max(self._settings.lease, 10 * self._settings.poll)
        return self._monotonic() - self._last_round > patience

    async def run(self) -> None:
        """Go on until cancelled; what is in hand is given back then, and is no attempt.

        While something is away, one job at a time is tried, after pauses that grow.
        """
        try:
            while True:
                self._last_round = self._monotonic()
                self._wake.clear()
                await self._round()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.poll):
                        await self._wake.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _round(self) -> None:
        """Claim as many jobs as there is room for."""
        try:
            await self._report()
            while self._has_room():
                claimed = await self._claim()
                if claimed is None:
                    return
                task = asyncio.create_task(self._work(claimed))
                self._tasks.add(task)
                task.add_done_callback(self._ended)
        except StoreUnavailable as away:
            self._outages.failed(self._monotonic())
            _log.warning("job_worker_waits", what=away.reason)

    async def _claim(self) -> ClaimedJob | None:
        """Claim a job; one that is claimed while the worker is stopped is given back."""
        claiming = asyncio.ensure_future(
            self._queue.claim(lease=self._settings.lease, now=self._clock())
        )
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(self._settings.goodbye):
                    claimed = await claiming
                if claimed is not None:
                    await self._say_goodbye(claimed)
            raise

    def _has_room(self) -> bool:
        if self._outages.rest:
            return False
        return len(self._tasks) < (1 if self._outages.known else self._settings.concurrency)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        if not task.cancelled() and (fault := task.exception()) is not None:
            # SQL refused to take the job back: its lease will run out.
            _log.error("job_not_given_back", **place_of(fault))

    async def _report(self) -> None:
        now = self._monotonic()
        if self._last_report is not None and now - self._last_report < self._settings.report_every:
            return
        self._last_report = now
        state = await self._queue.state()
        lag = timedelta(0) if state.oldest is None else self._clock() - state.oldest
        self._watch.on_state(state, max(lag, timedelta(0)))

    async def _work(self, claimed: ClaimedJob) -> None:
        begun = self._monotonic()
        job = claimed.job
        try:
            async with asyncio.timeout(self._settings.timeout):
                await work_under_lease(
                    self._learner.learn(claimed),
                    claimed,
                    self._queue,
                    clock=self._clock,
                    lease=self._settings.lease,
                )
        except LeaseLost:
            self._lost(claimed)
        except _AWAY as away:
            self._outages.failed(begun)
            _log.warning("job_waits", job_id=job.job_id, what=away.reason, outages=job.outages + 1)
            await self._let_go(claimed, away.reason, wait=pause(job.outages + 1), refund=True)
        except asyncio.CancelledError:
            await self._say_goodbye(claimed)
            raise
        except Exception as fault:  # noqa: BLE001 — the top of a job: whatever it is, it is counted
            _log.error("job_failed", job_id=job.job_id, attempt=job.attempt, **place_of(fault))
            await self._let_go(claimed, _reason(fault), wait=pause(job.attempt), refund=False)
        else:
            self._outages.worked(begun)

    async def _let_go(self, claimed: ClaimedJob, error: str, *, wait: float, refund: bool) -> None:
        """Give a job back, however long SQL is away."""
        given_back = False
        while not given_back:
            try:
                retry_at = self._clock() + timedelta(seconds=wait)
                await self._queue.give_back(claimed, error=error, retry_at=retry_at, refund=refund)
                given_back = True
            except LeaseLost:
                self._lost(claimed)
                return
            except StoreUnavailable:
                await asyncio.sleep(self._settings.poll)

    async def _say_goodbye(self, claimed: ClaimedJob) -> None:
        """Let another worker have the job at once; if that fails, when the lease runs out."""
        with contextlib.suppress(LeaseLost, StoreUnavailable, TimeoutError):
            async with asyncio.timeout(self._settings.goodbye):
                now = self._clock()
                error = claimed.job.last_error
                await self._queue.give_back(claimed, error=error, retry_at=now, refund=True)

    def _lost(self, claimed: ClaimedJob) -> None:
        job = claimed.job
        _log.warning("job_lease_lost", job_id=job.job_id, attempt=job.attempt)
        self._watch.on_lost()


def _reason(fault: Exception) -> str:
    """Give what a job's last_error may say: a word, since a text may quote the user."""
    if isinstance(fault, TimeoutError):
        return "TIMEOUT"
    return fault.reason if isinstance(fault, DomainError) else "INTERNAL"
