"""The worker: order, concurrency, outages, failures, lost leases, and how it stops."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.consolidate.allowed import WhereAllowed
from memory_service.consolidate.worker import JobSettings, JobWorker, Watch
from memory_service.domain.errors import (
    EmbedderUnavailable,
    IndexUnavailable,
    LeaseLost,
    ModelUnavailable,
    ModelUnreadable,
    StoreUnavailable,
)
from memory_service.domain.ingest import IngestOutcome, Job, JobState, Turn
from memory_service.domain.model import UserSettings, UserState
from memory_service.ports import ClaimedJob, QueueState
from tests.builders.turns import turn
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.memory_store import FakeMemoryStore

Step = Callable[[ClaimedJob], Awaitable[None]]
LEARNT = IngestOutcome(intent="preference")


class World:
    """A store, a learner that follows a script, and a worker. monotonic stands still."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.ids = FakeIds()
        self.store = FakeMemoryStore(clock=self.clock, new_id=FakeIds())
        self.monotonic = 1000.0
        self.ticks = 0
        self.script: dict[str, deque[Exception | Step]] = {}
        self.calls: list[str] = []
        self.states: list[tuple[QueueState, timedelta]] = []
        self.lost = 0
        self.worker = self.another()

    def another(self, **settings: float) -> JobWorker:
        wanted = {"poll": 0.001, "lease": 30.0, **settings}
        return JobWorker(
            queue=self.store.queue,
            learner=WhereAllowed(self, self.store, self.store, clock=self.clock),
            clock=self.clock,
            settings=JobSettings(**wanted),  # type: ignore[arg-type]
            watch=Watch(on_state=lambda *seen: self.states.append(seen), on_lost=self._on_lost),
            monotonic=self._monotonic,
        )

    def _monotonic(self) -> float:
        self.ticks += 1
        return self.monotonic

    def _on_lost(self) -> None:
        self.lost += 1

    async def learn(self, claimed: ClaimedJob) -> None:
        """Follow the script of what was said; without one, finish."""
        said = claimed.job.turn.messages[0].content
        self.calls.append(said)
        steps = self.script.get(said)
        step = steps.popleft() if steps else self.finish
        if isinstance(step, Exception):
            raise step
        await step(claimed)

    async def finish(self, claimed: ClaimedJob) -> None:
        user = claimed.job.turn.user_id
        await self.store.change(user, lambda tx: tx.jobs.finish(claimed, LEARNT))

    def says(self, said: str, *steps: Exception | Step) -> None:
        self.script[said] = deque(steps)

    async def add(self, *turns: Turn) -> list[str]:
        ids = []
        for each in turns:
            job_id = self.ids()
            await self.store.change(
                each.user_id,
                lambda tx, job_id=job_id, each=each: tx.jobs.add(  # type: ignore[misc]
                    job_id, each, job_id, self.clock()
                ),
            )
            ids.append(job_id)
        return ids

    def job(self, job_id: str) -> Job:
        return self.store.tables.jobs[job_id].shown()

    def state(self, job_id: str) -> JobState:
        return self.job(job_id).state

    @asynccontextmanager
    async def running(self, worker: JobWorker | None = None) -> AsyncIterator[None]:
        task = asyncio.create_task((worker or self.worker).run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def done(self, *job_ids: str) -> None:
        await until(lambda: all(self.state(each) is JobState.DONE for each in job_ids))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 — a condition of the store has no event
        await asyncio.sleep(0)


async def rounds(world: World) -> None:
    """Let the loop come round some times."""
    seen = world.ticks
    await until(lambda: world.ticks > seen + 10)


@pytest.fixture
def world() -> World:
    return World()


async def test_jobs_are_learnt_from_and_each_users_in_order(world: World) -> None:
    ids = await world.add(
        *(turn(f"{user} {n}", user_id=user) for n in range(3) for user in ("u1", "u2"))
    )
    async with world.running():
        await world.done(*ids)
    for user in ("u1", "u2"):
        assert [said for said in world.calls if said.startswith(user)] == [
            f"{user} {n}" for n in range(3)
        ]
    assert world.job(ids[0]).outcome == LEARNT


async def test_as_many_users_at_once_as_are_allowed(world: World) -> None:
    go_on = asyncio.Event()

    async def wait(claimed: ClaimedJob) -> None:
        await go_on.wait()
        await world.finish(claimed)

    for n in range(6):
        world.says(f"{n}", wait)
    ids = await world.add(*(turn(f"{n}", user_id=f"u{n}") for n in range(6)))
    async with world.running(world.another(concurrency=4)):
        await until(lambda: len(world.calls) == 4)
        await rounds(world)
        assert len(world.calls) == 4
        go_on.set()
        await world.done(*ids)


async def test_a_job_stored_in_this_process_need_not_wait_for_the_poll(world: World) -> None:
    worker = world.another(poll=3600.0)
    async with world.running(worker):
        await until(lambda: world.store.calls["claim_job"] == 1)
        (job,) = await world.add(turn())
        worker.notify()
        await world.done(job)


async def test_a_job_stored_elsewhere_is_found_by_the_next_poll(world: World) -> None:
    async with world.running():
        await until(lambda: world.store.calls["claim_job"] > 2)
        await world.done(*await world.add(turn()))


@pytest.mark.parametrize(
    "away",
    [
        ModelUnavailable(),
        EmbedderUnavailable("timeout"),
        IndexUnavailable("breaker_open"),
        StoreUnavailable(),
    ],
    ids=lambda away: type(away).__name__,
)
async def test_an_outage_is_no_attempt_and_does_not_make_the_loop_spin(
    world: World, away: Exception
) -> None:
    world.says("A", *[away] * 20)
    (first,) = await world.add(turn("A"))
    world.clock.advance(1)
    (other,) = await world.add(turn("B", user_id="u2"))
    async with world.running(world.another(concurrency=1)):
        await until(lambda: world.job(first).outages == 1)
        job = world.job(first)
        assert (job.state, job.attempt) == (JobState.PENDING, 0)
        assert job.last_error == away.reason  # type: ignore[attr-defined]
        assert job.next_attempt_time is not None
        assert (
            timedelta(seconds=0.5) <= job.next_attempt_time - world.clock() <= timedelta(seconds=1)
        )
        await rounds(world)
        assert world.calls == ["A"], "nothing is tried while it rests"
        world.monotonic += 1
        await world.done(other)
        for outages in range(2, 10):
            world.clock.advance(60)
            world.monotonic += 60
            await until(lambda outages=outages: world.job(first).outages == outages)  # type: ignore[misc]
        assert world.job(first).attempt == 0
        assert world.state(first) is JobState.PENDING


async def test_in_an_outage_one_job_at_a_time_is_tried(world: World) -> None:
    users = [f"u{n}" for n in range(8)]
    together = asyncio.Event()

    async def fails(_claimed: ClaimedJob) -> None:
        await together.wait()
        raise ModelUnavailable

    for user in users:
        world.says(user, fails, fails)
    ids = await world.add(*(turn(user, user_id=user) for user in users))
    async with world.running(world.another(concurrency=4)):
        await until(lambda: len(world.calls) == 4)
        together.set()
        await until(lambda: sum(world.job(each).outages for each in ids) == 4)
        await rounds(world)
        assert len(world.calls) == 4
        world.monotonic += 1
        await until(lambda: len(world.calls) == 5)
        await rounds(world)
        assert len(world.calls) == 5
        for user in users:
            world.script[user].clear()
        world.clock.advance(60)
        world.monotonic += 60
        await world.done(*ids)


async def test_a_failure_of_its_own_is_an_attempt_and_the_sixth_parks_it(world: World) -> None:
    """A51: poison is parked, and meanwhile others are done; then the user's later jobs go on."""
    world.says("poison", *[ModelUnreadable()] * 5, KeyError("what the user said"))
    poison, later, other = await world.add(turn("poison"), turn("B"), turn("C", user_id="u2"))
    async with world.running():
        await world.done(other)
        for attempt in range(1, 7):
            await until(lambda attempt=attempt: world.job(poison).attempt == attempt)  # type: ignore[misc]
            await until(lambda: world.state(poison) is not JobState.RUNNING)
            job = world.job(poison)
            if attempt < 6:
                assert (job.last_error, job.state) == ("MODEL_UNREADABLE", JobState.PENDING)
                assert world.state(later) is JobState.PENDING
            world.clock.advance(60)
        assert (job.state, job.last_error) == (JobState.PARKED, "INTERNAL")
        await world.done(later)


async def test_a_retry_is_never_overtaken(world: World) -> None:
    """A52: e1 fails once, e2 waits for it."""
    world.says("lives in A", ModelUnreadable())
    ids = await world.add(turn("lives in A"), turn("lives in B"))
    other = await world.add(turn("other", user_id="u2"))
    async with world.running():
        await world.done(*other)
        await until(lambda: world.job(ids[0]).last_error != "")
        await rounds(world)
        assert "lives in B" not in world.calls
        world.clock.advance(60)
        await world.done(*ids)
    assert [said for said in world.calls if said != "other"] == [
        "lives in A",
        "lives in A",
        "lives in B",
    ]


async def test_learning_that_takes_too_long_is_a_failure(world: World) -> None:
    async def hang(_claimed: ClaimedJob) -> None:
        await asyncio.Event().wait()

    world.says("A", hang)
    (job,) = await world.add(turn("A"))
    async with world.running(world.another(timeout=0.01)):
        await until(lambda: world.job(job).last_error != "")
    assert (world.state(job), world.job(job).attempt) == (JobState.PENDING, 1)
    assert world.job(job).last_error == "TIMEOUT"


async def test_a_lease_is_renewed_while_a_job_is_worked_on_also_after_an_outage(
    world: World,
) -> None:
    async def work(claimed: ClaimedJob) -> None:
        calls = world.store.calls
        await until(lambda: calls["renew_job"] >= 1)
        world.store.down = True
        seen = calls["renew_job"]
        await until(lambda: calls["renew_job"] > seen)
        world.store.down = False
        seen = calls["renew_job"]
        await until(lambda: calls["renew_job"] > seen + 1)
        await world.finish(claimed)

    world.says("A", work)
    (job,) = await world.add(turn("A"))
    async with world.running(world.another(lease=0.006)):
        await world.done(job)
    assert (world.job(job).attempt, world.lost) == (1, 0)


async def test_who_loses_the_lease_stops_and_it_is_counted(world: World) -> None:
    """A50: the job is another's; the first one ends without a trace."""
    cancelled = asyncio.Event()

    async def loses(_claimed: ClaimedJob) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    world.says("A", loses)
    (job,) = await world.add(turn("A"))
    async with world.running(world.another(lease=0.006, concurrency=1)):
        await until(lambda: world.calls == ["A"])
        row = world.store.tables.jobs[job]
        world.store.tables.jobs[job] = replace(row, token="another's")
        await cancelled.wait()
        await until(lambda: world.lost == 1)
    assert world.store.tables.jobs[job].token == "another's"


async def test_a_lease_that_is_found_lost_at_the_end_is_counted(world: World) -> None:
    world.says("A", LeaseLost())
    await world.add(turn("A"))
    async with world.running():
        await until(lambda: world.lost == 1)


async def test_a_lease_that_is_found_lost_when_giving_back_is_counted(world: World) -> None:
    async def robbed(claimed: ClaimedJob) -> None:
        row = world.store.tables.jobs[claimed.job.job_id]
        world.store.tables.jobs[claimed.job.job_id] = replace(row, token="another's")
        raise ModelUnreadable

    world.says("A", robbed)
    (job,) = await world.add(turn("A"))
    async with world.running():
        await until(lambda: world.lost == 1)
    assert world.state(job) is JobState.RUNNING


async def test_what_cannot_be_given_back_now_is_given_back_later(world: World) -> None:
    async def fails(_claimed: ClaimedJob) -> None:
        world.store.down = True
        raise ModelUnavailable

    world.says("A", fails)
    (job,) = await world.add(turn("A"))
    async with world.running():
        await until(lambda: world.store.calls["give_back_job"] > 3)
        world.store.down = False
        await until(lambda: world.state(job) is JobState.PENDING)
    assert (world.job(job).attempt, world.job(job).outages) == (0, 1)


async def test_a_job_that_sql_refuses_to_take_back_waits_for_its_lease(world: World) -> None:
    refused = asyncio.Event()

    async def broken(*_: object, **__: object) -> JobState:
        refused.set()
        message = "a constraint"
        raise ValueError(message)

    give_back = world.store.queue.give_back
    world.says("A", ModelUnreadable())
    job, other = await world.add(turn("A"), turn("B", user_id="u2"))
    world.store.queue.give_back = broken  # type: ignore[method-assign]
    async with world.running():
        await world.done(other)
        await refused.wait()
        world.store.queue.give_back = give_back  # type: ignore[method-assign]
        await rounds(world)
        assert world.state(job) is JobState.RUNNING
        world.clock.advance(30)
        await world.done(job)
    assert world.job(job).attempt == 2


async def test_a_worker_that_died_is_replaced_after_its_lease_and_the_effect_is_once(
    world: World,
) -> None:
    """A49: claimed, and never heard of again."""
    (job,) = await world.add(turn("A"))
    assert await world.store.queue.claim(lease=2.0, now=world.clock()) is not None
    async with world.running():
        await rounds(world)
        assert world.calls == []
        world.clock.advance(2)
        await world.done(job)
    assert (world.calls, world.job(job).attempt) == (["A"], 2)


async def test_sql_that_is_away_is_waited_for(world: World) -> None:
    (job,) = await world.add(turn("A"))
    world.store.down = True
    async with world.running():
        await rounds(world)
        assert world.store.calls["state_of_jobs"] == 1, "it rests"
        world.store.down = False
        world.monotonic += 1
        await world.done(job)


async def test_a_worker_that_is_stopped_gives_back_what_it_holds(world: World) -> None:
    async def wait(_claimed: ClaimedJob) -> None:
        await asyncio.Event().wait()

    world.says("A", wait, wait)
    (job,) = await world.add(turn("A"))
    for _ in range(2):
        async with world.running():
            await until(lambda: world.state(job) is JobState.RUNNING and "A" in world.calls)
        assert (world.state(job), world.job(job).attempt) == (JobState.PENDING, 0)
        assert world.job(job).next_attempt_time == world.clock()
        world.calls.clear()
    async with world.running():
        await world.done(job)


async def test_a_worker_that_is_stopped_while_it_claims_gives_that_back(world: World) -> None:
    (job,) = await world.add(turn("A"))
    claiming, go_on = asyncio.Event(), asyncio.Event()
    claim = world.store.queue.claim

    async def slow(**asked: object) -> ClaimedJob | None:
        claiming.set()
        await go_on.wait()
        return await claim(**asked)  # type: ignore[arg-type]

    world.store.queue.claim = slow  # type: ignore[method-assign]
    for state in (JobState.PENDING, JobState.DONE):
        task = asyncio.create_task(world.worker.run())
        await claiming.wait()
        task.cancel()
        go_on.set()
        await asyncio.wait([task])
        assert (world.state(job), world.calls) == (JobState(state), [])
        assert world.job(job).attempt in {0, 1}
        taken = await claim(lease=1, now=world.clock())
        if taken is not None:
            await world.finish(taken)
        claiming.clear()
        go_on.clear()


async def test_a_user_who_switched_memory_off_is_not_learnt_from(world: World) -> None:
    world.store.seed("u1", settings=UserSettings(memory_enabled=False))
    (job,) = await world.add(turn("A"))
    async with world.running():
        await world.done(job)
    assert (world.calls, world.job(job).outcome) == ([], IngestOutcome(warnings=("settings",)))


async def test_what_was_said_before_the_user_was_erased_is_not_learnt_from(world: World) -> None:
    world.store.tables.states["u1"] = UserState(user_id="u1", erase_time=world.clock())
    old, new = await world.add(
        turn("old", create_time=world.clock()),
        turn("new", create_time=world.clock() + timedelta(seconds=1)),
    )
    async with world.running():
        await world.done(old, new)
    assert world.job(old).outcome == IngestOutcome(warnings=("erased",))
    assert (world.calls, world.job(new).outcome) == (["new"], LEARNT)


async def test_what_waits_is_reported_with_the_age_of_the_oldest(world: World) -> None:
    async def wait(_claimed: ClaimedJob) -> None:
        await asyncio.Event().wait()

    world.says("A", wait)
    async with world.running():
        await until(lambda: len(world.states) == 1)
        assert world.states[0] == (
            QueueState(pending=0, running=0, parked=0, oldest=None),
            timedelta(0),
        )
        await world.add(turn("A"), turn("B"))
        stored = world.clock()
        await until(lambda: world.calls == ["A"])
        world.clock.advance(20)
        world.monotonic += 5
        await until(lambda: len(world.states) == 2)
        waiting = QueueState(pending=1, running=1, parked=0, oldest=stored)
        assert world.states[1] == (waiting, timedelta(seconds=20))
        world.clock.advance(-90)
        world.monotonic += 5
        await until(lambda: len(world.states) == 3)
        assert world.states[2] == (waiting, timedelta(0))
        await rounds(world)
        assert len(world.states) == 3


async def test_a_loop_that_does_not_come_round_is_stalled_until_it_moves(world: World) -> None:
    claim = world.store.queue.claim
    hung = asyncio.Event()

    async def hang(**_: object) -> ClaimedJob | None:
        hung.set()
        await asyncio.Event().wait()
        return None

    worker = world.another(goodbye=0.001)
    world.monotonic += 1000
    assert not worker.stalled(), "it never ran"
    world.store.queue.claim = hang  # type: ignore[method-assign]
    async with world.running(worker):
        await hung.wait()
        assert not worker.stalled()
        world.monotonic += 31
        assert worker.stalled()
    world.store.queue.claim = claim  # type: ignore[method-assign]
    async with world.running(worker):
        await until(lambda: not worker.stalled())
