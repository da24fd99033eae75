"""Lost turns are closed and old ones forgotten, again and again, whatever the store does."""

import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from agent_service.chat import close_lost_turns
from agent_service.domain.errors import TurnNotFound
from agent_service.domain.model import Failed
from tests.builders.agent_turns import new_turn
from tests.fakes.clock import FakeClock
from tests.fakes.faulty_agent_store import FaultyAgentStore


async def swept(store: FaultyAgentStore, clock: FakeClock, *, rounds: int) -> None:
    sweep = asyncio.create_task(
        close_lost_turns(store, clock, interval=0.001, retention=timedelta(days=1))
    )
    await store.called("close_expired", store.calls["close_expired"] + rounds)
    sweep.cancel()
    await asyncio.gather(sweep, return_exceptions=True)


async def test_a_lost_turn_is_closed_told_and_forgotten_when_its_time_is_over() -> None:
    store, clock = FaultyAgentStore(), FakeClock()
    await store.open(new_turn("t1", now=clock()))
    clock.advance(11)
    with capture_logs() as logs:
        await swept(store, clock, rounds=3)
    assert [line["event"] for line in logs] == ["lost_turns_closed"]
    events = await store.events("ann", "c1", "t1", after_seq=0, now=clock())
    assert isinstance(events[-1].event, Failed)
    clock.advance(timedelta(days=2))
    await swept(store, clock, rounds=2)
    with pytest.raises(TurnNotFound):
        await store.events("ann", "c1", "t1", after_seq=0, now=clock())


async def test_a_store_that_is_away_does_not_end_the_sweep() -> None:
    store, clock = FaultyAgentStore(), FakeClock()
    store.away["close_expired"] = 2
    await store.open(new_turn("t1", now=clock()))
    clock.advance(11)
    await swept(store, clock, rounds=4)
    events = await store.events("ann", "c1", "t1", after_seq=0, now=clock())
    assert isinstance(events[-1].event, Failed)
