"""Touches: collected, written in the background, never in the way."""

import asyncio
from datetime import timedelta

from memory_service.retrieve import touch
from memory_service.retrieve.touch import Touches
from tests.builders.memories import memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.memory_store import FakeMemoryStore


def store() -> FakeMemoryStore:
    made = FakeMemoryStore(clock=FakeClock(), new_id=FakeIds())
    made.seed("u1", memory("m1"), memory("m2"))
    return made


async def test_touches_of_a_moment_are_written_together() -> None:
    kept, now = store(), FakeClock()
    touches = Touches(kept, interval=0.01)
    touches.note(["m1"], now())
    now.advance(timedelta(seconds=5))
    touches.note(["m1", "m2"], now())
    await asyncio.sleep(0.05)
    assert kept.calls["touch"] == 1
    assert kept.tables.memories["m1"].last_access_time == now()
    touches.note(["m2"], now())
    await touches.close()
    assert kept.calls["touch"] == 2


async def test_nothing_recalled_is_nothing_written() -> None:
    kept, now = store(), FakeClock()
    touches = Touches(kept, interval=0.01)
    touches.note([], now())
    await touches.close()
    assert kept.calls["touch"] == 0


async def test_closing_writes_what_is_left_at_once() -> None:
    kept, now = store(), FakeClock()
    touches = Touches(kept, interval=3600)
    touches.note(["m1"], now())
    await touches.close()
    assert kept.tables.memories["m1"].last_access_time == now()


async def test_more_than_can_be_kept_is_not_kept() -> None:
    kept, now = store(), FakeClock()
    touches = Touches(kept, interval=3600)
    touches.note([f"x{n}" for n in range(touch.MOST_WAITING)], now())
    touches.note(["m1"], now())
    await touches.close()
    assert kept.tables.memories["m1"].last_access_time is None
