"""Closing turns that nobody meets again."""

import asyncio

import structlog

from agent_service.domain.errors import StoreUnavailable
from agent_service.ports import Clock, TurnStore

log = structlog.get_logger("agent")
BATCH = 100


async def close_lost_turns(store: TurnStore, clock: Clock, *, interval: float) -> None:
    """Close turns whose lease ran out, every interval seconds, until cancelled."""
    while True:
        try:
            closed = await store.close_expired(clock(), limit=BATCH)
        except StoreUnavailable:
            closed = 0
        if closed:
            log.warning("lost_turns_closed", turns=closed)
        await asyncio.sleep(interval)
