"""The use case of the queue, and which turns are not learnt from."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.consolidate.jobs import Jobs
from memory_service.domain.errors import JobNotFound, JobNotParked, RequestIdReused
from memory_service.domain.ingest import Job, JobState, why_not_learnt
from memory_service.domain.model import Role, UserSettings, UserState
from memory_service.ports import JobFilter, RequestKey
from tests.builders.memories import NOW
from tests.builders.turns import turn
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.memory_store import FakeMemoryStore


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FakeMemoryStore(clock=self.clock, new_id=FakeIds(), job_attempts=1)
        self.stored = 0
        self.jobs = Jobs(
            self.store.queue,
            self.store,
            clock=self.clock,
            new_id=FakeIds(),
            on_stored=self.hear,
        )

    def hear(self) -> None:
        self.stored += 1

    async def park(self) -> None:
        taken = await self.store.queue.claim(lease=1, now=self.clock())
        assert taken is not None
        state = await self.store.queue.give_back(
            taken, error="E", retry_at=self.clock(), refund=False
        )
        assert state is JobState.PARKED


@pytest.fixture
def world() -> World:
    return World()


def key(request_id: str, digest: bytes = b"d", rpc: str = "IngestTurn") -> RequestKey:
    return RequestKey(request_id, rpc, digest)


def its_id(job: Job) -> bytes:
    return job.job_id.encode()


async def test_the_same_request_has_one_job_and_another_body_none(world: World) -> None:
    first = await world.jobs.ingest(turn(), key("r1"), its_id)
    assert await world.jobs.ingest(turn(), key("r1"), its_id) == first
    with pytest.raises(RequestIdReused):
        await world.jobs.ingest(turn("other"), key("r1", b"other"), its_id)
    assert [job.job_id for job in await world.jobs.page("u1", JobFilter(), before=0, size=9)] == [
        first.decode()
    ]
    assert world.stored == 2, "a worker may look once too often, and never once too seldom"


async def test_a_job_is_stored_whatever_the_settings_say(world: World) -> None:
    world.store.seed("u1", settings=UserSettings(memory_enabled=False))
    job_id = (await world.jobs.ingest(turn(), key("r1"), its_id)).decode()
    assert (await world.jobs.get("u1", job_id)).state is JobState.PENDING
    with pytest.raises(JobNotFound):
        await world.jobs.get("u2", job_id)
    with pytest.raises(JobNotFound):
        await world.jobs.get("u1", "unknown")


async def test_a_page_has_one_job_more_if_there_are_more(world: World) -> None:
    for n in range(3):
        await world.jobs.ingest(turn(f"{n}"), key(f"r{n}"), its_id)
    page = await world.jobs.page("u1", JobFilter(), before=0, size=2)
    assert [job.seq for job in page] == [3, 2, 1]
    assert [job.seq for job in await world.jobs.page("u1", JobFilter(), before=2, size=2)] == [1]


async def test_a_parked_job_is_queued_again_once_per_request(world: World) -> None:
    job_id = (await world.jobs.ingest(turn(), key("r1"), its_id)).decode()
    retry = key("r2", rpc="RetryIngestJob")
    with pytest.raises(JobNotParked):
        await world.jobs.retry("u1", job_id, retry, its_id)
    await world.park()
    heard = world.stored
    assert await world.jobs.retry("u1", job_id, retry, its_id) == job_id.encode()
    assert world.stored == heard + 1
    assert (await world.jobs.get("u1", job_id)).attempt == 0
    await world.park()
    await world.jobs.retry("u1", job_id, retry, its_id)
    assert (await world.jobs.get("u1", job_id)).state is JobState.PARKED
    with pytest.raises(JobNotFound):
        await world.jobs.retry("u2", job_id, key("r3"), its_id)


def test_a_user_whose_memory_is_off_is_not_learnt_from() -> None:
    allowed = UserState(user_id="u1")
    off = replace(allowed, settings=UserSettings(memory_enabled=False))
    assert why_not_learnt(allowed, turn()) == ""
    assert why_not_learnt(off, turn()) == "settings"


def test_a_turn_in_which_the_user_said_nothing_since_the_erasure_is_not_learnt_from() -> None:
    (said,) = turn().messages
    later = replace(said, create_time=NOW + timedelta(microseconds=1))
    erased = UserState(user_id="u1", erase_time=NOW)
    assert why_not_learnt(erased, turn()) == "erased"
    answered = replace(later, role=Role.ASSISTANT)
    assert why_not_learnt(erased, replace(turn(), messages=(said, answered))) == "erased"
    assert why_not_learnt(erased, replace(turn(), messages=(answered, said))) == "erased"
    assert why_not_learnt(erased, replace(turn(), messages=(said, later))) == ""
    assert why_not_learnt(erased, replace(turn(), messages=(later,))) == ""
