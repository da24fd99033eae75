"""One running turn: its events, what is stored of it, and all the ways in which it ends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent_service.chat.running import CANCELLED, SHUTTING_DOWN, Pace, RunningTurn
from agent_service.domain.errors import BudgetExceeded, ModelUnavailable
from agent_service.domain.model import (
    ContextAssembled,
    Delta,
    Done,
    Event,
    Failed,
    Started,
    TurnEvent,
)
from agent_service.handlers.failures import failed_turn
from agent_service.ports import AssistantSaid, TurnOpened
from tests.builders.agent_turns import new_turn, report
from tests.builders.chatting import answer_of
from tests.fakes.clock import FakeClock
from tests.fakes.faulty_agent_store import FOREVER, FaultyAgentStore

FINISH = Done("stop", actual_prompt_tokens=7)


class Running:
    """A turn of ann in c1 that is open and ours."""

    def __init__(self, **pace: Any) -> None:
        self.store = FaultyAgentStore()
        self.clock = FakeClock()
        self.closed = asyncio.Event()
        self.given = 0
        self.pace = Pace(
            **{
                "heartbeat": 0.005,
                "event_batch": 0.0,
                "store_pause": 0.001,
                **pace,
            }
        )

    async def open(self) -> RunningTurn:
        opened = await self.store.open(new_turn(now=self.clock()))
        assert isinstance(opened, TurnOpened)
        return RunningTurn(
            self.store, opened.lease, opened.started, self.clock, self.pace, failed_turn
        )

    async def work(self, *steps: Event | Exception | asyncio.Event) -> AsyncGenerator[Event, None]:
        try:
            for step in steps:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Exception):
                    raise step
                else:
                    self.given += 1
                    yield step
        finally:
            self.closed.set()

    async def run(self, *steps: Event | Exception | asyncio.Event) -> list[TurnEvent]:
        """Run and read a turn to its end."""
        turn = await self.open()
        running = asyncio.create_task(turn.run(self.work(*steps)))
        events = [event async for event in turn.events()]
        assert (await running) == events[-1].event
        return events

    async def stored(self) -> list[TurnEvent]:
        return list(await self.store.events("ann", "c1", "t1", after_seq=0, now=self.clock()))

    async def answers(self) -> list[AssistantSaid]:
        timeline = await self.store.timeline("ann", "c1", after=0, before=None, limit=99)
        return [kept.event for kept in timeline if isinstance(kept.event, AssistantSaid)]


def forever() -> asyncio.Event:
    return asyncio.Event()


async def test_events_are_numbered_without_gaps_stored_as_sent_and_end_once() -> None:
    running = Running()
    events = await running.run(Delta("a"), Delta("b"), FINISH, Delta("too late"))
    assert [event.seq for event in events] == [2, 3, 4]
    assert [event.event for event in events] == [Delta("a"), Delta("b"), FINISH]
    started, *rest = await running.stored()
    assert isinstance(started.event, Started)
    assert rest == events
    assert await running.answers() == [AssistantSaid("ab", incomplete=False)]


async def test_events_are_stored_while_the_turn_runs() -> None:
    running, release = Running(), asyncio.Event()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), release, FINISH)))
    await running.store.called("append")
    assert len(await running.stored()) == 2
    release.set()
    assert await task == FINISH


async def test_an_event_is_handed_on_once_it_is_stored() -> None:
    running = Running()
    running.store.gates["append"] = asyncio.Event()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), forever())))
    await running.store.called("append")
    reading = asyncio.ensure_future(anext(turn.events()))
    await asyncio.sleep(0.01)
    assert not reading.done()
    running.store.gates["append"].set()
    assert await reading == TurnEvent(2, Delta("a"))
    turn.end(CANCELLED)
    await task


async def test_after_a_crash_what_was_sent_keeps_its_seq_and_the_error_comes_after_it() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(*map(Delta, "abcdef"), forever())))
    reading = turn.events()
    sent = [await anext(reading) for _ in range(6)]
    running.store.gates = dict.fromkeys(("append", "close", "heartbeat"), forever())
    running.clock.now += timedelta(hours=1)
    _started, *kept, last = await running.stored()
    assert kept == sent
    assert last.seq == sent[-1].seq + 1
    assert isinstance(last.event, Failed)
    task.cancel()


async def test_nothing_is_stored_again_and_again_while_nothing_happens() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(forever())))
    await running.store.called("heartbeat", 3)
    assert running.store.calls["append"] == 0
    turn.end(CANCELLED)
    await task


async def test_the_report_is_stored_with_what_the_model_counted() -> None:
    running = Running()
    await running.run(ContextAssembled(report(actual_prompt_tokens=None)), FINISH)
    stats = await running.store.context_stats("ann", "c1")
    assert stats.last_report is not None
    assert stats.last_report.actual_prompt_tokens == 7


async def test_a_failed_turn_keeps_its_report_and_its_partial_answer() -> None:
    running = Running()
    assembled = ContextAssembled(report(actual_prompt_tokens=None))
    events = await running.run(assembled, Delta("a"), ModelUnavailable("it went away"))
    assert events[-1].event == Failed("MODEL_UNAVAILABLE", "it went away")
    assert await running.answers() == [AssistantSaid("a", incomplete=True)]
    assert (await running.store.context_stats("ann", "c1")).last_report is not None


async def test_a_failure_before_the_first_token_is_an_error_event_and_no_answer() -> None:
    running = Running()
    events = await running.run(BudgetExceeded(needed=9, usable=5, ids=("user_turn",)))
    [only] = events
    assert isinstance(only.event, Failed)
    assert only.event.reason == "CONTEXT_BUDGET_EXCEEDED"
    assert await running.answers() == []


async def test_an_unexpected_exception_is_an_error_event_that_tells_nothing_of_it() -> None:
    running = Running()
    with capture_logs() as logs:
        events = await running.run(Delta("a"), RuntimeError("secret"))
    last = events[-1].event
    assert isinstance(last, Failed)
    assert last.reason == "INTERNAL"
    assert "secret" not in last.text
    assert [line["event"] for line in logs] == ["turn_failed"]


async def test_work_that_ends_without_a_last_event_has_failed() -> None:
    last = (await Running().run(Delta("a")))[-1].event
    assert isinstance(last, Failed)
    assert last.reason == "INTERNAL"


@pytest.mark.parametrize("ending", [CANCELLED, SHUTTING_DOWN])
async def test_a_turn_may_be_ended_from_outside_and_keeps_what_was_said(
    ending: Done | Failed,
) -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), forever())))
    reading = turn.events()
    assert (await anext(reading)).event == Delta("a")
    turn.end(ending)
    turn.end(Failed("OTHER", "too late: the first ending counts"))
    assert (await anext(reading)).event == ending
    assert await task == ending
    assert running.closed.is_set()
    assert await running.answers() == [AssistantSaid("a", incomplete=True)]


async def test_a_turn_that_is_ended_before_it_begins_does_nothing() -> None:
    running = Running()
    turn = await running.open()
    turn.leave(0)
    assert await turn.run(running.work(Delta("a"), FINISH)) == CANCELLED
    assert running.given == 0


async def test_a_turn_whose_tasks_are_cancelled_from_elsewhere_ends_as_cancelled() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), forever())))
    assert (await anext(turn.events())).event == Delta("a")
    assert turn._work is not None
    turn._work.cancel()
    assert await task == CANCELLED


async def test_a_cancel_flag_in_the_store_ends_the_turn_at_its_next_sign_of_life() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(forever())))
    assert await running.store.cancel("ann", "c1", "t1", running.clock())
    assert await task == CANCELLED


# ---------------------------------------------------------------- readers


async def test_a_slow_reader_slows_the_work() -> None:
    running = Running(queue=2)
    turn = await running.open()
    words = [Delta(letter) for letter in "abcdefgh"]
    task = asyncio.create_task(turn.run(running.work(*words, FINISH)))
    await running.store.called("heartbeat", 3)
    assert running.given == 3  # two wait for the reader, one for its turn
    assert answer_of([event async for event in turn.events()]) == "abcdefgh"
    assert await task == FINISH


async def test_a_slow_reader_of_a_cancelled_turn_misses_no_event_that_was_stored() -> None:
    running = Running(queue=1)
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), Delta("b"), FINISH)))
    await running.store.called("append")
    turn.end(CANCELLED)
    assert await task == CANCELLED
    read = [event async for event in turn.events()]
    assert read == (await running.stored())[1:]
    assert [event.seq for event in read] == [2, 3]


async def test_a_reader_who_leaves_ends_the_turn_though_the_work_waited_for_him() -> None:
    running = Running(queue=1)
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), Delta("b"), FINISH)))
    await running.store.called("append")
    turn.leave(0)
    assert await task == CANCELLED
    assert await running.answers() == [AssistantSaid("a", incomplete=True)]


async def test_a_turn_goes_on_for_the_grace_and_no_longer() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), forever())))
    turn.leave(0.02)
    await running.store.called("append")
    assert not task.done()
    assert await task == CANCELLED
    assert await running.answers() == [AssistantSaid("a", incomplete=True)]


async def test_a_turn_that_ends_within_the_grace_is_whole() -> None:
    running = Running(queue=1)
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), Delta("b"), FINISH)))
    turn.leave(30)
    assert await task == FINISH
    assert await running.answers() == [AssistantSaid("ab", incomplete=False)]


async def test_a_follower_within_the_grace_keeps_the_turn_running() -> None:
    running, release = Running(), asyncio.Event()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), release, FINISH)))
    turn.leave(0.02)
    turn.follow()
    await asyncio.sleep(0.05)
    assert not task.done()
    turn.follow()
    turn.unfollow(0)
    release.set()
    assert await task == FINISH


async def test_the_last_follower_who_leaves_ends_the_turn() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(forever())))
    turn.follow()
    turn.leave(0)
    await running.store.called("heartbeat")
    assert not task.done()
    turn.unfollow(0)
    assert await task == CANCELLED


# ---------------------------------------------------------------- when the store is away


async def test_events_that_could_not_be_stored_are_stored_later() -> None:
    running, release = Running(), asyncio.Event()
    running.store.away["append"] = 2
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), release, FINISH)))
    await running.store.called("append", 3)
    assert len(await running.stored()) == 2
    release.set()
    assert await task == FINISH


async def test_a_turn_of_which_nothing_was_stored_is_stored_at_its_end() -> None:
    running = Running()
    running.store.away["append"] = running.store.away["heartbeat"] = FOREVER
    running.store.away["close"] = 2
    events = await running.run(Delta("a"), FINISH)
    assert (await running.stored())[1:] == events


async def test_an_append_that_was_under_way_at_the_end_is_no_loss_and_no_double() -> None:
    running = Running()
    running.store.gates["append"] = forever()
    turn = await running.open()
    release = asyncio.Event()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), release, FINISH)))
    await running.store.called("append")
    release.set()
    assert await task == FINISH
    assert [event.seq for event in await running.stored()] == [1, 2, 3]


async def test_an_end_that_cannot_be_stored_is_said() -> None:
    running = Running()
    running.store.away["close"] = FOREVER
    with capture_logs() as logs:
        events = await running.run(Delta("a"), FINISH)
    last = events[-1].event
    assert isinstance(last, Failed)
    assert last.reason == "STORE_UNAVAILABLE"
    assert [line["event"] for line in logs] == ["turn_not_stored"]
    assert running.store.calls["close"] == 5


async def test_a_store_that_breaks_at_the_end_does_not_leave_the_reader_waiting() -> None:
    running = Running()
    running.store.broken["close"] = RuntimeError("secret")
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(FINISH)))
    [only] = [event async for event in turn.events()]
    assert isinstance(only.event, Failed)
    assert only.event.reason == "INTERNAL"
    with pytest.raises(RuntimeError):
        await task


@pytest.mark.parametrize("method", ["append", "heartbeat", "close"])
async def test_a_lease_that_was_lost_ends_the_turn_and_stores_nothing(method: str) -> None:
    running = Running()
    running.store.lost.add(method)
    last_step = FINISH if method == "close" else forever()
    events = await running.run(Delta("a"), last_step)
    last = events[-1].event
    assert isinstance(last, Failed)
    assert last.reason == "TURN_LOST"
    assert running.closed.is_set()
    assert running.store.outbox.learnings == []


async def test_a_lease_lives_as_long_as_the_turn_runs() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(forever())))
    for beat in range(1, 5):
        running.clock.advance(9)
        await running.store.called("heartbeat", running.store.calls["heartbeat"] + 2)
        assert len(await running.stored()) == 1, beat  # looking would close an expired turn
    turn.end(CANCELLED)
    assert await task == CANCELLED


async def test_events_may_be_closed_at_any_time() -> None:
    running = Running()
    turn = await running.open()
    task = asyncio.create_task(turn.run(running.work(Delta("a"), FINISH)))
    async with aclosing(turn.events()) as events:
        await anext(events)
    assert await task == FINISH
