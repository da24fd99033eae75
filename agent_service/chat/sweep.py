"""Closing turns that nobody meets again, and forgetting those that nobody resumes any more."""

import asyncio
from datetime import timedelta

import structlog

from agent_service.domain.errors import StoreUnavailable
from agent_service.ports import Clock, TurnStore

log = structlog.get_logger("agent")
BATCH = 100


async def close_lost_turns(
    store: TurnStore, clock: Clock, *, interval: float, retention: timedelta
) -> None:
    """Look every interval seconds until cancelled.

    Turns whose lease ran out are closed; those that ended longer ago than retention are forgotten.
    """
    while True:
        try:
            closed = await store.close_expired(clock(), limit=BATCH)
            await store.forget(before=clock() - retention, limit=BATCH)
        except StoreUnavailable:
            closed = 0
        if closed:
            log.warning("lost_turns_closed", turns=closed)
        await asyncio.sleep(interval)
