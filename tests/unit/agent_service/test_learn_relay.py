"""The relay on fakes: nothing is lost, nothing overtakes, nobody is hammered."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent_service.domain.errors import StoreUnavailable
from agent_service.domain.learning import MAX_CONTENT_BYTES
from agent_service.outbox import LearnRelay, RelaySettings, tend_outbox
from agent_service.ports import ClaimedTurn, OutboxState
from tests.builders.learning import to_learn
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.learn_outbox import FakeLearnOutbox
from tests.fakes.learn_target import FakeLearnTarget

POLL = 0.5


class FaultyOutbox(FakeLearnOutbox):
    """away: how many of the next calls of a method fail, broken: with what; calls counts them."""

    def __init__(self) -> None:
        super().__init__(FakeIds())
        self.away: Counter[str] = Counter()
        self.broken: dict[str, Exception] = {}
        self.calls: Counter[str] = Counter()
        self._called = asyncio.Event()

    async def called(self, method: str, times: int) -> None:
        """Wait until the method has been called so many times in all."""
        while self.calls[method] < times:
            self._called.clear()
            await self._called.wait()

    def _meet(self, method: str) -> None:
        self.calls[method] += 1
        self._called.set()
        if self.away[method]:
            self.away[method] -= 1
            raise self.broken.get(method, StoreUnavailable())

    async def claim(self, *, limit: int, lease: timedelta, now: datetime) -> Sequence[ClaimedTurn]:
        self._meet("claim")
        return await super().claim(limit=limit, lease=lease, now=now)

    async def delivered(self, claimed: ClaimedTurn, *, now: datetime) -> bool:
        self._meet("delivered")
        return await super().delivered(claimed, now=now)

    async def state(self) -> OutboxState:
        self._meet("state")
        return await super().state()


class Relaying:
    """A relay on fakes; waits have no jitter."""

    def __init__(self, **settings: Any) -> None:
        self.outbox = FaultyOutbox()
        self.target = FakeLearnTarget()
        self.clock = FakeClock()
        self.leases_lost = 0
        self.settings = RelaySettings(poll=POLL, **settings)
        self.relay = self.another()

    def another(self) -> LearnRelay:
        return LearnRelay(
            outbox=self.outbox,
            target=self.target,
            clock=self.clock,
            settings=self.settings,
            on_lease_lost=self._count,
            jitter=lambda: 0.0,
        )

    def _count(self) -> None:
        self.leases_lost += 1

    def say(self, turn_id: str, user_id: str = "ann", **of: Any) -> None:
        self.outbox.add(to_learn(turn_id, user_id, **of), self.clock())

    async def steps(self, until: Callable[[float], bool]) -> list[float]:
        """Step until a pause is the last one, moving the clock by each, and give the pauses."""
        pauses: list[float] = []
        while not pauses or not until(pauses[-1]):
            pauses.append(await self.relay.step())
            self.clock.advance(pauses[-1])
        return pauses

    def entry(self, turn_id: str) -> Any:
        (found,) = [one for one in self.outbox.entries if one.turn.turn_id == turn_id]
        return found


def idle(pause: float) -> bool:
    return pause == POLL


@asynccontextmanager
async def running(relay: LearnRelay) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(relay.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# ------------------------------------------------------------ all is well


async def test_turns_are_delivered_in_order_and_their_words_are_forgotten() -> None:
    on = Relaying()
    for name in ("t1", "t2", "t3"):
        on.say(name)
    on.say("b1", "bob")
    assert await on.steps(idle) == [0, 0, 0, POLL]
    assert [name for name in on.target.names if name != "b1"] == ["t1", "t2", "t3"]
    assert on.target.names.index("b1") < 2  # beside the first one
    assert [one.state for one in on.outbox.entries] == ["done"] * 4
    assert not any(one.has_content for one in on.outbox.entries)


async def test_an_answer_above_the_limit_is_cut_on_the_way() -> None:
    on = Relaying()
    on.say("t1", answer="x" * 40_000)
    await on.relay.step()
    (turn,) = on.target.learnt
    assert [len(said.content) for said in turn.messages] == [10, MAX_CONTENT_BYTES]


async def test_handing_over_ends_long_before_the_lease() -> None:
    on = Relaying(lease=30)
    on.say("t1")
    await on.relay.step()
    assert on.target.within == [10]


# ------------------------------------------------------------ outages


async def test_an_outage_is_no_attempt_and_asks_ever_more_seldom_with_one_turn() -> None:
    on = Relaying()
    on.target.away[""] = "unavailable"
    for number in range(5):
        on.say(f"t{number}", f"u{number}")
    with capture_logs() as logs:
        pauses = await on.steps(lambda pause: pause == 60)
    assert pauses == [1, 2, 4, 8, 16, 32, 60]
    assert sum(on.target.asked.values()) == 5 + len(pauses) - 1
    assert {one.attempt for one in on.outbox.entries} == {0}
    assert {line["event"] for line in logs} == {"learn_relay_outage"}
    assert logs[0]["causes"] == ["unavailable"]
    on.target.away.clear()
    assert (await on.steps(idle))[-1] == POLL
    assert sorted(on.target.names) == ["t0", "t1", "t2", "t3", "t4"]
    on.target.away[""] = "unavailable"
    on.say("t5")
    assert await on.relay.step() == 1  # the outage before is over


async def test_an_outage_is_not_over_because_nothing_is_due() -> None:
    on = Relaying()
    on.target.away[""] = "timeout"
    on.say("t1")
    assert await on.relay.step() == 1
    assert await on.relay.step() == POLL
    on.clock.advance(1)
    assert await on.relay.step() == 2


async def test_one_turn_that_cannot_be_told_does_not_keep_others_from_it() -> None:
    on = Relaying()
    on.target.away["bob"] = "deadline_exceeded"
    on.say("b1", "bob")
    for number in range(3):
        on.say(f"a{number}")
    for _ in range(8):
        on.clock.advance(await on.relay.step())
    assert on.target.names == ["a0", "a1", "a2"]
    assert on.entry("b1").attempt == 0


# ------------------------------------------------------------ refusals


async def test_a_refused_turn_is_parked_after_its_last_try_and_the_next_one_follows() -> None:
    """A51, A52: the user waits meanwhile, others do not."""
    on = Relaying(max_tries=4)
    on.target.refused.add("bad")
    on.say("bad")
    on.say("good")
    on.say("b1", "bob")
    with capture_logs() as logs:
        for seconds in (1, 2, 4):
            assert await on.relay.step() == 0
            assert on.target.names == ["b1"]
            on.clock.advance(seconds - 0.001)
            assert await on.relay.step() == POLL
            on.clock.advance(0.001)
        assert await on.relay.step() == 0
    assert await on.relay.step() == 0
    assert on.target.names == ["b1", "good"]
    (parked,) = await on.outbox.parked(limit=9)
    assert (parked.turn_id, parked.attempt) == ("bad", 4)
    assert parked.error == "INVALID_ARGUMENT messages[0].content"
    events = [line["event"] for line in logs]
    assert events == ["turn_refused"] * 3 + ["turn_parked"]
    assert "vegan" not in str(logs)


async def test_a_turn_that_this_program_cannot_hand_over_stops_no_other() -> None:
    on = Relaying(max_tries=1)
    on.target.broken.add("odd")
    on.say("odd")
    on.say("b1", "bob")
    with capture_logs() as logs:
        await on.relay.step()
    assert on.target.names == ["b1"]
    assert [(one.turn_id, one.error) for one in await on.outbox.parked(limit=9)] == [
        ("odd", "RELAY_FAILED")
    ]
    assert [line["event"] for line in logs] == ["turn_not_deliverable", "turn_parked"]


# ------------------------------------------------------------ crashes and leases


async def test_a_turn_whose_relay_died_is_taken_over_when_the_lease_ends() -> None:
    """A49: and what the memory service got before is not doubled, by its request_id."""
    on = Relaying(lease=30)
    on.say("t1")
    on.say("t2")
    (dead,) = await on.outbox.claim(limit=9, lease=timedelta(seconds=30), now=on.clock())
    assert await on.relay.step() == POLL
    on.clock.advance(30)
    await on.steps(idle)
    assert [(turn.turn_id, turn.request_id) for turn in on.target.learnt] == [
        ("t1", "t1"),
        ("t2", "t2"),
    ]
    assert dead.turn == on.target.learnt[0]


async def test_a_turn_that_ends_each_of_its_relays_is_parked_untried() -> None:
    """A50: attempts are counted when a turn is claimed."""
    on = Relaying(max_tries=2)
    on.say("t1")
    for _ in range(2):
        await on.outbox.claim(limit=9, lease=timedelta(seconds=30), now=on.clock())
        on.clock.advance(30)
    assert await on.relay.step() == 0
    assert on.target.learnt == []
    assert [one.error for one in await on.outbox.parked(limit=9)] == ["RELAY_LOST"]


async def test_a_lost_lease_is_logged_and_counted_and_nothing_is_changed() -> None:
    on = Relaying(lease=30)
    on.say("t1")
    on.target.gate = asyncio.Event()
    late = asyncio.create_task(on.relay.step())
    await on.target.begun.wait()
    on.clock.advance(30)
    heir = await on.outbox.claim(limit=9, lease=timedelta(seconds=30), now=on.clock())
    on.target.gate.set()
    with capture_logs() as logs:
        await late
    assert [line["event"] for line in logs] == ["learn_lease_lost"]
    assert on.leases_lost == 1
    assert await on.outbox.delivered(heir[0], now=on.clock())


async def test_a_relay_that_is_stopped_gives_back_what_it_holds() -> None:
    on = Relaying()
    on.say("t1")
    on.target.gate = asyncio.Event()
    async with running(on.relay):
        await on.target.begun.wait()
    assert (on.entry("t1").state, on.entry("t1").attempt) == ("pending", 0)
    on.target.gate.set()
    assert await on.another().step() == 0
    assert on.target.names == ["t1"]


# ------------------------------------------------------------ the loop


async def test_a_turn_that_ends_here_is_delivered_without_waiting_for_the_poll() -> None:
    on = Relaying()
    on.settings = RelaySettings(poll=3600)
    relay = on.another()
    async with running(relay):
        await on.outbox.called("claim", 1)
        on.say("t1")
        relay.notify()
        await on.target.told.wait()
    assert on.target.names == ["t1"]


async def test_a_turn_that_ends_elsewhere_is_found_by_the_poll() -> None:
    on = Relaying()
    on.settings = RelaySettings(poll=0.001)
    async with running(on.another()):
        await on.outbox.called("claim", 2)
        on.say("t1")
        await on.target.told.wait()
        await on.outbox.called("claim", on.outbox.calls["claim"] + 2)  # and it goes on


async def test_turns_that_end_do_not_shorten_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    on = Relaying()
    on.target.away[""] = "unavailable"
    on.say("t1")
    slept: list[float] = []
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        on.relay.notify()
        if len(slept) == 3:
            asleep.set()
            await asyncio.Event().wait()
        on.clock.advance(seconds)

    monkeypatch.setattr("agent_service.outbox.relay.asyncio.sleep", sleep)
    async with running(on.relay):
        await asleep.wait()
    assert slept == [1, 2, 4]
    assert on.target.asked["t1"] == 3


@pytest.mark.parametrize("fault", [StoreUnavailable(), RuntimeError()])
async def test_nothing_that_the_store_does_ends_the_relay(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = Relaying()
    on.outbox.broken["claim"] = on.outbox.broken["delivered"] = fault
    on.outbox.away["claim"] = 3
    on.outbox.away["delivered"] = 1
    on.say("t1")
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        # after a turn that was told and not noted: until its lease ends
        on.clock.advance(on.settings.lease if on.target.learnt else seconds)

    monkeypatch.setattr("agent_service.outbox.relay.asyncio.sleep", sleep)
    with capture_logs():
        async with running(on.relay):
            await on.outbox.called("delivered", 2)
    # 1, 2, 4: no claim; 8: what was told could not be noted. Then it is told once more.
    assert slept == [1, 2, 4, 8]
    assert [turn.request_id for turn in on.target.learnt] == ["t1", "t1"]


# ------------------------------------------------------------ tending


async def test_what_waits_is_told_again_and_again_whatever_the_store_does() -> None:
    outbox, clock = FaultyOutbox(), FakeClock()
    outbox.away["state"] = 1
    outbox.add(to_learn("old"), clock())
    (claimed,) = await outbox.claim(limit=1, lease=timedelta(seconds=9), now=clock())
    await outbox.delivered(claimed, now=clock())
    clock.advance(timedelta(days=8))
    outbox.add(to_learn("new"), clock())
    told: list[OutboxState] = []
    tending = asyncio.create_task(
        tend_outbox(
            outbox, clock, interval=0.001, retention=timedelta(days=7), on_state=told.append
        )
    )
    await outbox.called("state", 4)
    tending.cancel()
    await asyncio.gather(tending, return_exceptions=True)
    assert told[0] == OutboxState(pending=1, parked=0, oldest=clock())
    assert [entry.turn.turn_id for entry in outbox.entries] == ["new"]
