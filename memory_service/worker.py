"""What runs beside the RPCs: loops that are started again when they fail."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import structlog
from prometheus_client import Counter, Gauge

Loop = Callable[[], Awaitable[None]]
"""Works until it is cancelled."""

INDEX_OUTBOX_DEPTH = Gauge("memory_index_outbox_depth", "Changes that the index was not told yet")
INDEX_DRIFT = Gauge(
    "memory_index_drift",
    "Memories in which SQL and the index differed when they were last compared",
    ["kind"],
)
JOBS_PENDING = Gauge("memory_jobs_pending", "Turns that wait to be learnt from")
JOBS_PARKED = Gauge("memory_jobs_parked", "Turns given up after their last attempt")
JOBS_LAG = Gauge("memory_jobs_lag_seconds", "Age of the oldest turn that is not done")
JOB_LEASES_LOST = Counter("memory_job_leases_lost", "Jobs that another worker took from this one")

_log = structlog.get_logger(__name__)


def show_drift(counts: Mapping[str, int]) -> None:
    """Set the metric: missing, what the index lacks; orphaned, what only the index has."""
    for kind in ("missing", "orphaned"):
        INDEX_DRIFT.labels(kind).set(counts[kind])


class Written:
    """Called after each write of this process; tells those who would have to poll otherwise."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[str], object]] = []

    def listen(self, listener: Callable[[str], object]) -> None:
        """Call a listener, which neither waits nor fails, after each write from now on.

        It is told whose memories, settings or jobs were written.
        """
        self._listeners.append(listener)

    def __call__(self, user_id: str) -> None:
        """Tell all."""
        for listener in self._listeners:
            listener(user_id)


class Worker:
    """Runs named loops; one that fails pauses, at first that many seconds, then twice as long."""

    def __init__(
        self, loops: Mapping[str, Loop], *, pause: float = 1.0, longest: float = 60.0
    ) -> None:
        self._loops = dict(loops)
        self._pause = pause
        self._longest = longest

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the loops inside, and cancel them at the end."""
        tasks = [
            asyncio.create_task(self._keep(name, loop), name=name)
            for name, loop in self._loops.items()
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, name: str, loop: Loop) -> None:
        pause = self._pause
        while True:
            begun = asyncio.get_running_loop().time()
            try:
                await loop()
            except Exception:  # noqa: BLE001 — the top of a loop, see DESIGN
                _log.exception("worker_loop_failed", loop=name)
            else:
                _log.error("worker_loop_ended", loop=name)
            if asyncio.get_running_loop().time() - begun > self._longest:
                pause = self._pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._longest)
