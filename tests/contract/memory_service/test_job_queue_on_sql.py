"""What only a server can get wrong in the queue: locks, plans, races."""

import asyncio

import pytest
from sqlalchemy import Connection, text

from database.access import in_snapshot
from memory_service.adapters.sql.job_rows import plan
from memory_service.adapters.sql.jobs import AHEAD, DUE
from memory_service.adapters.sql.schema import memory_jobs
from memory_service.adapters.sql.store import SqlMemoryStore, open_memory_store
from memory_service.adapters.sql.transaction import raise_revision
from memory_service.domain.ingest import IngestOutcome
from memory_service.ports import Transaction
from tests.builders.memories import memory
from tests.builders.turns import turn
from tests.contract.memory_service.memory_stores import Stores, created
from tests.contract.memory_service.test_job_queue import claim, claimed, finish, queue
from tests.contract.memory_service.test_store_statements import explain
from tests.fakes.clock import FakeIds

Sql = tuple[SqlMemoryStore, Stores]


@pytest.mark.mariadb
async def test_a_user_whom_another_transaction_holds_is_passed_over(mariadb_sql: Sql) -> None:
    store, stores = mariadb_sql
    await queue(stores, turn(user_id="u1"))
    stores.clock.advance(1)
    (second,) = await queue(stores, turn(user_id="u2"))
    with store.database.engine.connect() as writer:
        raise_revision(writer, "u1")
        plan(writer, "u1")
        assert (await claimed(stores)).job.job_id == second.job_id
        assert await claim(stores) is None
        writer.rollback()
    assert (await claimed(stores)).job.turn.user_id == "u1"


@pytest.mark.mariadb
async def test_a_claim_locks_one_user_although_many_are_due(mariadb_sql: Sql) -> None:
    store, stores = mariadb_sql
    for n in range(20):
        await queue(stores, turn(user_id=f"u{n}"))
    now = {"now": stores.clock.now}
    engine = store.database.engine
    with engine.connect() as one, engine.connect() as two:
        assert one.scalar(DUE, now) != two.scalar(DUE, now)
        assert (await claimed(stores)).job.turn.user_id
        one.rollback()
        two.rollback()


async def test_claims_find_their_user_by_the_index(sql: Sql) -> None:
    store, stores = sql
    for n in range(50):
        await queue(stores, turn(user_id=f"u{n}"))
    now = stores.clock.now
    for statement, values in ((DUE, {"now": now}), (AHEAD, {"latest": now})):
        found = in_snapshot(
            store.database.engine,
            lambda c, s=statement, v=values: explain(c, s, v),  # type: ignore[misc]
        )
        assert "ix_memory_user_states_next_job" in found, found
        assert "TEMP B-TREE" not in found
        assert "filesort" not in found


@pytest.mark.mariadb
async def test_workers_and_writers_at_once_make_no_deadlock(mariadb_sql: Sql) -> None:
    store, stores = mariadb_sql
    users = [f"u{n:02}" for n in range(16)]
    before = in_snapshot(store.database.engine, deadlocks)
    left = 16 * 3

    async def write(user: str) -> None:
        for n in range(3):
            await queue(stores, turn(f"thing {n}", user_id=user))
            await stores.keep(memory(f"{user}-{n}", user_id=user))

    async def work() -> None:
        nonlocal left
        while left > 0:
            taken = await claim(stores)
            if taken is None:
                await asyncio.sleep(0)
                continue
            left -= 1
            await stores.queue.renew(taken, lease=30, now=stores.clock.now)
            job = taken.job

            def apply(tx: Transaction) -> None:
                tx.put(created(memory(f"of {job.job_id}", user_id=job.turn.user_id)))  # noqa: B023
                tx.jobs.finish(taken, IngestOutcome())  # noqa: B023

            await stores.writer.change(job.turn.user_id, apply)

    await asyncio.gather(*map(write, users), *(work() for _ in range(8)))
    assert in_snapshot(store.database.engine, deadlocks) == before
    assert (await stores.reader.stats("u00")).active_by_type == {"fact": 6}
    assert (await stores.queue.state()).pending == 0


def deadlocks(connection: Connection) -> int:
    row = connection.execute(text("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")).one()
    return int(row[1])


async def test_each_poll_sees_what_others_stored_meanwhile(sql: Sql) -> None:
    store, stores = sql
    address = store.database.engine.url.render_as_string(hide_password=False)
    other = open_memory_store(address, clock=stores.clock, new_id=FakeIds())
    assert await other.queue.claim(lease=30, now=stores.clock.now) is None
    (job,) = await queue(stores)
    found = await other.queue.claim(lease=30, now=stores.clock.now)
    assert found is not None
    assert found.job.job_id == job.job_id
    other.close()


async def test_jobs_that_vanish_leave_nobody_waiting(sql: Sql) -> None:
    """Whoever removes jobs need not note it: a claim does when it finds none."""
    store, stores = sql
    await queue(stores, turn(user_id="u1"))
    stores.clock.advance(1)
    await queue(stores, turn(user_id="u2"))
    with store.database.engine.begin() as connection:
        connection.execute(memory_jobs.delete().where(memory_jobs.c.user_id == "u1"))
    taken = await claimed(stores)
    assert taken.job.turn.user_id == "u2"
    await finish(stores, taken)
    assert await claim(stores) is None
