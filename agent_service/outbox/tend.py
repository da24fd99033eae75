"""Counting what waits in the outbox, and forgetting what was delivered long ago."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from agent_service.domain.errors import StoreUnavailable
from agent_service.ports import Clock, LearnOutbox, OutboxState

BATCH = 100


async def tend_outbox(
    outbox: LearnOutbox,
    clock: Clock,
    *,
    interval: float,
    retention: timedelta,
    on_state: Callable[[OutboxState], object],
) -> None:
    """Tell on_state every interval seconds until cancelled, also while the relay sits out.

    Turns delivered and stored longer ago than retention are forgotten.
    """
    while True:
        try:
            on_state(await outbox.state())
            await outbox.forget(before=clock() - retention, limit=BATCH)
        except StoreUnavailable:
            pass  # the relay says so
        await asyncio.sleep(interval)
