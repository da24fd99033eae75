"""Working on a job while its lease is renewed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from memory_service.domain.errors import LeaseLost, StoreUnavailable
from memory_service.ports import ClaimedJob, Clock, JobQueue


async def work_under_lease(
    work: Coroutine[Any, Any, None],
    claimed: ClaimedJob,
    queue: JobQueue,
    *,
    clock: Clock,
    lease: float,
) -> None:
    """Run work, renewing the lease at each third of it. Raises what work raises.

    Work is cancelled and LeaseLost raised as soon as it is known that another worker has the job.
    While SQL is away the lease may run out: whoever finishes then without it is fenced off.
    """
    working = asyncio.create_task(work)
    renewing = asyncio.create_task(_renew(claimed, queue, clock, lease))
    try:
        await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            renewing.result()
            raise LeaseLost
        working.result()
    finally:
        for task in (working, renewing):
            task.cancel()
        await asyncio.gather(working, renewing, return_exceptions=True)


async def _renew(claimed: ClaimedJob, queue: JobQueue, clock: Clock, lease: float) -> None:
    """Renew until the lease is lost."""
    held = True
    while held:
        await asyncio.sleep(lease / 3)
        try:
            held = await queue.renew(claimed, lease=lease, now=clock())
        except StoreUnavailable:
            continue
