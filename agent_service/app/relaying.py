"""What delivers turns to the memory service, inside `serve` or alone, and its metrics."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from prometheus_client import Counter, Gauge

from agent_service.adapters.memory_client import MemoryClient
from agent_service.adapters.sql.outbox import SqlLearnOutbox
from agent_service.app.parts import open_database, open_memory_channel, relay_settings
from agent_service.outbox import LearnRelay, tend_outbox
from agent_service.ports import Clock, LearnOutbox, LearnTarget, OutboxState
from agent_service.settings import AgentSettings
from rpc.ids import new_id, utc_now

PENDING = Gauge("agent_outbox_pending", "Turns that the memory service was not told yet")
PARKED = Gauge("agent_outbox_parked", "Turns that the memory service refused too often")
LAG = Gauge("agent_outbox_lag_seconds", "Age of the oldest pending turn; 0: none is pending")
LEASES_LOST = Counter("agent_outbox_leases_lost", "Turns told later than their lease allows")

TEND_EVERY = 5.0


class Relaying:
    """The relay of a process, and what counts and tidies its outbox. Both work inside running()."""

    def __init__(
        self, outbox: LearnOutbox, target: LearnTarget, settings: AgentSettings, clock: Clock
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._retention = timedelta(seconds=settings.outbox_retention)
        self._relay = LearnRelay(
            outbox=outbox,
            target=target,
            clock=clock,
            settings=relay_settings(settings),
            on_lease_lost=LEASES_LOST.inc,
        )

    def notify(self) -> None:
        """Say that a turn ended, so that it is delivered at once."""
        self._relay.notify()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver inside, and give back at the end what is not delivered."""
        tending = tend_outbox(
            self._outbox,
            self._clock,
            interval=TEND_EVERY,
            retention=self._retention,
            on_state=self._show,
        )
        tasks = [asyncio.create_task(self._relay.run()), asyncio.create_task(tending)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _show(self, state: OutboxState) -> None:
        PENDING.set(state.pending)
        PARKED.set(state.parked)
        age = timedelta() if state.oldest is None else self._clock() - state.oldest
        LAG.set(max(0.0, age.total_seconds()))


@asynccontextmanager
async def open_relaying(settings: AgentSettings) -> AsyncIterator[Relaying]:
    """Open a relay without the service; waits for no server. Raises ValueError for addresses."""
    async with AsyncExitStack() as closing:
        database = open_database(settings)
        closing.callback(database.close)
        channel = open_memory_channel(settings)
        closing.push_async_callback(channel.close)
        memory = MemoryClient(channel, cut=settings.memory_cut)
        yield Relaying(SqlLearnOutbox(database, new_id), memory, settings, utc_now)


@asynccontextmanager
async def open_outbox(settings: AgentSettings) -> AsyncIterator[SqlLearnOutbox]:
    """Open the outbox for somebody who looks after it."""
    database = open_database(settings)
    try:
        yield SqlLearnOutbox(database, new_id)
    finally:
        database.close()
