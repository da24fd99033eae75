"""What JobQueue, JobReader and JobRows promise."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.errors import JobNotFound, JobNotParked, LeaseLost, RequestIdReused
from memory_service.domain.ingest import (
    Action,
    Decision,
    IngestOutcome,
    Job,
    JobState,
    Reason,
    Turn,
    wordless,
)
from memory_service.ports import ClaimedJob, JobFilter, QueueState, Transaction
from tests.builders.memories import memory
from tests.builders.turns import turn
from tests.contract.memory_service.memory_stores import Stores

LEASE = 30.0
DONE = IngestOutcome(
    intent="preference",
    decisions=(Decision(fact=memory("m1"), action=Action.ADD, reason=Reason.NEW),),
    warnings=("truncated",),
)


async def queue(stores: Stores, *turns: Turn) -> list[Job]:
    """Store a job for each turn, in transactions of their own."""
    jobs: list[Job] = []
    for each in turns or (turn(),):
        job_id, request_id = stores.ids(), stores.ids()
        jobs.append(await add(stores, each, job_id=job_id, request_id=request_id))
    return jobs


async def add(stores: Stores, what: Turn, *, job_id: str, request_id: str) -> Job:
    return await stores.writer.change(
        what.user_id, lambda tx: tx.jobs.add(job_id, what, request_id, stores.clock.now)
    )


async def claim(stores: Stores, lease: float = LEASE) -> ClaimedJob | None:
    return await stores.queue.claim(lease=lease, now=stores.clock.now)


async def claimed(stores: Stores, lease: float = LEASE) -> ClaimedJob:
    found = await claim(stores, lease)
    assert found is not None
    return found


async def finish(stores: Stores, job: ClaimedJob, outcome: IngestOutcome = DONE) -> None:
    await stores.writer.change(job.job.turn.user_id, lambda tx: tx.jobs.finish(job, outcome))


async def give_back(
    stores: Stores, job: ClaimedJob, pause: float = 0.0, *, refund: bool = False, error: str = "E"
) -> JobState:
    retry_at = stores.clock.now + timedelta(seconds=pause)
    return await stores.queue.give_back(job, error=error, retry_at=retry_at, refund=refund)


async def stored(stores: Stores, job: Job | ClaimedJob) -> Job:
    wanted = job.job if isinstance(job, ClaimedJob) else job
    found = await stores.jobs.get(wanted.turn.user_id, wanted.job_id)
    assert found is not None
    return found


async def park(stores: Stores, attempts: int = 6) -> ClaimedJob:
    """Fail the first due job until it is parked."""
    for _ in range(attempts):
        last = await claimed(stores)
        state = await give_back(stores, last)
    assert state is JobState.PARKED
    return last


async def test_a_job_is_stored_claimed_and_done(stores: Stores) -> None:
    (job,) = await queue(stores)
    now = stores.clock.now
    assert (job.seq, job.state, job.attempt, job.turn) == (1, JobState.PENDING, 0, turn())
    assert (job.create_time, job.next_attempt_time) == (now, now)
    assert await stored(stores, job) == job
    taken = await claimed(stores)
    assert taken.job == replace(job, state=JobState.RUNNING, attempt=1, next_attempt_time=None)
    assert await stored(stores, job) == taken.job
    assert await claim(stores) is None
    await finish(stores, taken)
    done = replace(taken.job, state=JobState.DONE, outcome=DONE, turn=wordless(turn()))
    assert await stored(stores, job) == done, "nobody needs the words any more"
    stores.clock.advance(timedelta(days=1))
    assert await claim(stores) is None


async def test_a_users_jobs_are_done_in_order_one_at_a_time(stores: Stores) -> None:
    jobs = await queue(stores, *(turn(f"thing {n}") for n in range(3)))
    assert [job.seq for job in jobs] == [1, 2, 3]
    for job in jobs:
        taken = await claimed(stores)
        assert taken.job.job_id == job.job_id
        assert await claim(stores) is None, "a later job of the user must wait"
        await finish(stores, taken)
    assert await claim(stores) is None


async def test_a_job_that_must_wait_holds_up_its_user_and_nobody_else(stores: Stores) -> None:
    first, second = await queue(stores, turn("A"), turn("B"))
    assert await give_back(stores, await claimed(stores), pause=10) is JobState.PENDING
    waiting = await stored(stores, first)
    assert waiting.next_attempt_time == stores.clock.now + timedelta(seconds=10)
    assert (waiting.attempt, waiting.last_error) == (1, "E")
    (other,) = await queue(stores, turn(user_id="u2"))
    assert (await claimed(stores)).job.job_id == other.job_id
    assert await claim(stores) is None
    stores.clock.advance(9.999)
    assert await claim(stores) is None
    stores.clock.advance(0.001)
    again = await claimed(stores)
    assert (again.job.job_id, again.job.attempt) == (first.job_id, 2)
    await finish(stores, again)
    assert (await stored(stores, first)).last_error == ""
    assert (await claimed(stores)).job.job_id == second.job_id


async def test_who_waits_longest_comes_first(stores: Stores) -> None:
    for user in ("u3", "u1", "u2"):
        await queue(stores, turn(user_id=user))
        stores.clock.advance(1)
    users = [(await claimed(stores)).job.turn.user_id for _ in range(3)]
    assert users == ["u3", "u1", "u2"]


async def test_a_lease_that_ran_out_is_another_s_and_the_first_is_fenced(stores: Stores) -> None:
    (job,) = await queue(stores)
    lost = await claimed(stores)
    stores.clock.advance(LEASE - 0.001)
    assert await claim(stores) is None
    stores.clock.advance(0.001)
    taken = await claimed(stores)
    assert (taken.job.attempt, taken.job.last_error) == (2, "WORKER_LOST")
    assert taken.token != lost.token
    assert not await stores.queue.renew(lost, lease=LEASE, now=stores.clock.now)
    with pytest.raises(LeaseLost):
        await finish(stores, lost)
    with pytest.raises(LeaseLost):
        await give_back(stores, lost)
    assert await stored(stores, job) == taken.job
    await finish(stores, taken)
    with pytest.raises(LeaseLost):
        await finish(stores, lost)
    assert (await stored(stores, job)).outcome == DONE


async def test_a_lease_that_ran_out_and_nobody_took_is_still_good(stores: Stores) -> None:
    (job,) = await queue(stores)
    late = await claimed(stores)
    stores.clock.advance(2 * LEASE)
    await finish(stores, late)
    assert (await stored(stores, job)).state is JobState.DONE


async def test_a_renewed_lease_lasts_longer(stores: Stores) -> None:
    await queue(stores)
    taken = await claimed(stores)
    for _ in range(5):
        stores.clock.advance(LEASE - 1)
        assert await stores.queue.renew(taken, lease=LEASE, now=stores.clock.now)
        assert await claim(stores) is None
    stores.clock.advance(LEASE)
    assert (await claimed(stores)).job.attempt == 2


async def test_what_was_given_back_is_lost_and_what_is_finished_is_not(stores: Stores) -> None:
    (job,) = await queue(stores)
    taken = await claimed(stores)
    await give_back(stores, taken, pause=5)
    before = await stored(stores, job)
    assert not await stores.queue.renew(taken, lease=LEASE, now=stores.clock.now)
    with pytest.raises(LeaseLost):
        await finish(stores, taken)
    assert await stored(stores, job) == before
    stores.clock.advance(5)
    taken = await claimed(stores)
    await finish(stores, taken)
    assert await stores.queue.renew(taken, lease=LEASE, now=stores.clock.now)
    assert (await stored(stores, job)).state is JobState.DONE


async def test_a_failure_of_its_own_is_an_attempt_and_the_sixth_parks_it(stores: Stores) -> None:
    first, second = await queue(stores, turn("poison"), turn("B"))
    for attempt in range(1, 7):
        taken = await claimed(stores)
        assert (taken.job.job_id, taken.job.attempt) == (first.job_id, attempt)
        state = await give_back(stores, taken, error="x" * 999)
        assert state is (JobState.PARKED if attempt == 6 else JobState.PENDING)
    parked = await stored(stores, first)
    assert (parked.state, parked.attempt, parked.last_error) == (JobState.PARKED, 6, "x" * 500)
    assert parked.next_attempt_time is None
    assert (await claimed(stores)).job.job_id == second.job_id, "later jobs go on"


async def test_an_outage_is_no_attempt_however_often(stores: Stores) -> None:
    (job,) = await queue(stores)
    for outage in range(8):
        taken = await claimed(stores)
        assert (taken.job.attempt, taken.job.outages) == (1, outage)
        assert await give_back(stores, taken, refund=True, error="AWAY") is JobState.PENDING
    kept = await stored(stores, job)
    assert (kept.attempt, kept.outages, kept.last_error) == (0, 8, "AWAY")
    await give_back(stores, await claimed(stores))
    kept = await stored(stores, job)
    assert (kept.attempt, kept.outages) == (1, 0)


async def test_workers_that_die_are_attempts_and_the_sixth_parks_it(stores: Stores) -> None:
    first, second = await queue(stores, turn("kills its worker"), turn("B"))
    for _ in range(6):
        last = await claimed(stores)
        assert last.job.job_id == first.job_id
        stores.clock.advance(LEASE)
    assert (await claimed(stores)).job.job_id == second.job_id
    parked = await stored(stores, first)
    assert (parked.state, parked.attempt) == (JobState.PARKED, 6)
    assert parked.last_error == "WORKER_LOST"
    with pytest.raises(LeaseLost):
        await finish(stores, last)


async def test_a_job_whose_last_worker_died_is_parked_though_it_is_the_only_one(
    stores: Stores,
) -> None:
    (job,) = await queue(stores)
    for _ in range(6):
        await claimed(stores)
        stores.clock.advance(LEASE)
    assert await claim(stores) is None
    assert (await stored(stores, job)).state is JobState.PARKED


async def test_a_parked_job_is_queued_again_with_new_attempts(stores: Stores) -> None:
    (job,) = await queue(stores)
    old = await park(stores)
    assert await claim(stores) is None
    stores.clock.advance(5)

    def work(tx: Transaction) -> Job:
        return tx.jobs.requeue(job.job_id, stores.clock.now)

    again = await stores.writer.change("u1", work)
    assert (again.state, again.attempt, again.last_error) == (JobState.PENDING, 0, "E")
    assert again.next_attempt_time == stores.clock.now
    assert await stored(stores, job) == again
    with pytest.raises(JobNotParked):
        await stores.writer.change("u1", work)
    with pytest.raises(JobNotFound):
        await stores.writer.change("u2", work)
    with pytest.raises(LeaseLost):
        await finish(stores, old)
    taken = await claimed(stores)
    assert (taken.job.job_id, taken.job.attempt) == (job.job_id, 1)
    await finish(stores, taken)
    with pytest.raises(JobNotParked):
        await stores.writer.change("u1", work)


async def test_a_job_queued_again_does_not_run_beside_a_later_one(stores: Stores) -> None:
    first, second, third = await queue(stores, turn("A"), turn("B"), turn("C"))
    await park(stores)
    running = await claimed(stores)
    assert running.job.job_id == second.job_id
    await stores.writer.change("u1", lambda tx: tx.jobs.requeue(first.job_id, stores.clock.now))
    assert await claim(stores) is None
    await finish(stores, running)
    for job in (first, third):
        taken = await claimed(stores)
        assert taken.job.job_id == job.job_id
        await finish(stores, taken)


async def test_finishing_is_part_of_the_transaction(stores: Stores) -> None:
    (job,) = await queue(stores)
    taken = await claimed(stores)

    def fails(tx: Transaction) -> None:
        assert tx.jobs.is_held(taken)
        tx.jobs.finish(taken, DONE)
        assert not tx.jobs.is_held(taken)
        message = "no"
        raise ValueError(message)

    with pytest.raises(ValueError, match="no"):
        await stores.writer.change("u1", fails)
    assert await stored(stores, job) == taken.job
    await finish(stores, taken)
    other = IngestOutcome(intent="chitchat")
    await finish(stores, taken, other)
    assert (await stored(stores, job)).outcome == DONE, "the same claim finishes once"
    assert await give_back(stores, taken) is JobState.DONE
    assert (await stored(stores, job)).outcome == DONE


async def test_a_request_has_one_job_however_late_it_comes_again(stores: Stores) -> None:
    first = await add(stores, turn(), job_id="j1", request_id="r1")
    again = await add(stores, turn(), job_id="j2", request_id="r1")
    assert again == first
    with pytest.raises(RequestIdReused):
        await add(stores, turn("other"), job_id="j3", request_id="r1")
    stores.clock.advance(1)
    other = await add(stores, turn(user_id="u2"), job_id="j4", request_id="r1")
    assert other.job_id == "j4"
    await finish(stores, await claimed(stores))
    assert (await add(stores, turn(), job_id="j5", request_id="r1")).state is JobState.DONE


async def test_users_have_their_own_jobs_only(stores: Stores) -> None:
    (mine,) = await queue(stores)
    (theirs,) = await queue(stores, turn(user_id="u2"))
    assert await stores.jobs.get("u2", mine.job_id) is None
    assert await stores.writer.change("u2", lambda tx: tx.jobs.get(mine.job_id)) is None
    assert await stores.writer.change("u1", lambda tx: tx.jobs.get(mine.job_id)) == mine
    for user, job in (("u1", mine), ("u2", theirs)):
        assert list(await stores.jobs.page(user, JobFilter(), before=0, limit=9)) == [job]


async def test_a_list_is_newest_first_in_pages_and_filtered(stores: Stores) -> None:
    jobs = await queue(
        stores,
        *(turn(f"{n}", conversation_id=f"c{n % 2}", turn_id=f"t{n % 3}") for n in range(6)),
    )
    await finish(stores, await claimed(stores))
    await claimed(stores)
    newest = [job.job_id for job in reversed(jobs)]

    async def page(before: int = 0, limit: int = 9, **wanted: object) -> list[str]:
        found = await stores.jobs.page(
            "u1",
            JobFilter(**wanted),  # type: ignore[arg-type]
            before=before,
            limit=limit,
        )
        return [job.job_id for job in found]

    assert await page() == newest
    assert await page(limit=2) == newest[:2]
    assert await page(before=jobs[4].seq, limit=2) == newest[2:4]
    assert await page(conversation_id="c1") == newest[::2]
    assert await page(turn_id="t0") == [jobs[3].job_id, jobs[0].job_id]
    assert await page(states=frozenset({JobState.DONE})) == [jobs[0].job_id]
    unfinished = frozenset({JobState.PENDING, JobState.RUNNING})
    assert await page(states=unfinished, conversation_id="c0") == [jobs[4].job_id, jobs[2].job_id]


async def test_a_users_jobs_are_counted_with_the_rest(stores: Stores) -> None:
    stats = await stores.reader.stats("u1")
    assert (dict(stats.jobs_by_state), stats.oldest_job) == ({}, None)
    await queue(stores, turn("A"))
    stores.clock.advance(60)
    second, _ = await queue(stores, turn("B"), turn("C"))
    await finish(stores, await claimed(stores))
    await claimed(stores)
    stores.clock.advance(-90)
    await queue(stores, turn(user_id="u2"))
    stats = await stores.reader.stats("u1")
    assert dict(stats.jobs_by_state) == {"done": 1, "running": 1, "pending": 1}
    assert stats.oldest_job == second.create_time


async def test_what_waits_is_counted(stores: Stores) -> None:
    empty = QueueState(pending=0, running=0, parked=0, oldest=None)
    assert await stores.queue.state() == empty
    (oldest, *_) = await queue(stores, turn("A"))
    stores.clock.advance(60)
    await queue(stores, turn("B"), turn(user_id="u2"))
    taken = await claimed(stores)
    assert await stores.queue.state() == QueueState(
        pending=2, running=1, parked=0, oldest=oldest.create_time
    )
    await finish(stores, taken)
    for _ in range(2):
        await park(stores)
    assert await stores.queue.state() == QueueState(pending=0, running=0, parked=2, oldest=None)


@pytest.mark.parametrize("ahead", [timedelta(minutes=5), timedelta(days=365)])
async def test_a_clock_that_was_ahead_delays_no_pause(stores: Stores, ahead: timedelta) -> None:
    true_time = stores.clock.now
    stores.clock.advance(ahead)
    (stored_ahead,) = await queue(stores)
    (given_back, *_) = await queue(stores, turn(user_id="u2"), turn("B", user_id="u2"))
    taken = [await claimed(stores), await claimed(stores)]
    assert {each.job.job_id for each in taken} == {stored_ahead.job_id, given_back.job_id}
    for each in taken:
        await give_back(stores, each, pause=60)
    stores.clock.now = true_time
    again = [await claimed(stores), await claimed(stores)]
    assert {each.job.job_id for each in again} == {stored_ahead.job_id, given_back.job_id}
    assert await claim(stores) is None


async def test_a_clock_that_was_ahead_lets_a_lease_run_out_in_its_time(stores: Stores) -> None:
    true_time = stores.clock.now
    stores.clock.advance(timedelta(days=365))
    await queue(stores)
    alive = await claimed(stores)
    stores.clock.now = true_time
    assert await claim(stores) is None, "its worker may be alive"
    stores.clock.advance(LEASE - 1)
    assert await stores.queue.renew(alive, lease=LEASE, now=stores.clock.now)
    stores.clock.advance(LEASE - 1)
    assert await claim(stores) is None
    stores.clock.advance(1)
    assert (await claimed(stores)).job.attempt == 2


async def test_a_clock_that_is_set_forward_makes_a_lease_another_s_and_fences(
    stores: Stores,
) -> None:
    (job,) = await queue(stores)
    lost = await claimed(stores)
    stores.clock.advance(timedelta(days=365))
    taken = await claimed(stores)
    with pytest.raises(LeaseLost):
        await finish(stores, lost)
    await finish(stores, taken)
    assert (await stored(stores, job)).attempt == 2


async def test_two_workers_never_hold_the_same_job_nor_the_same_user(stores: Stores) -> None:
    """Eight workers, sixteen users, three jobs each: once each, in order, none lost."""
    users = [f"u{n:02}" for n in range(16)]
    for number in range(3):
        await asyncio.gather(
            *(queue(stores, turn(f"thing {number}", user_id=user)) for user in users)
        )
    held: set[str] = set()
    done: list[tuple[str, int]] = []

    async def work() -> None:
        while len(done) < 48:
            taken = await claim(stores)
            if taken is None:
                # Of eight workers some find all users held; those who hold them go on.
                await asyncio.sleep(0)
                continue
            user = taken.job.turn.user_id
            assert user not in held
            held.add(user)
            await stores.queue.renew(taken, lease=LEASE, now=stores.clock.now)
            held.remove(user)
            done.append((user, taken.job.seq))
            await finish(stores, taken)

    await asyncio.gather(*(work() for _ in range(8)))
    assert len(done) == len(set(done)) == 48
    for user in users:
        seqs = [seq for whose, seq in done if whose == user]
        assert seqs == sorted(seqs)
    assert (await stores.queue.state()).pending == 0
