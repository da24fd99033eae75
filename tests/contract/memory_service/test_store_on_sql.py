"""What only a database can get wrong: connections that die, statements, plans, races."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, select, text, update

from database.access import in_snapshot, in_transaction
from memory_service.adapters.sql.schema import (
    memories,
    memory_history,
    memory_user_states,
)
from memory_service.adapters.sql.store import SqlMemoryStore, open_memory_store
from memory_service.domain.errors import StoreUnavailable
from memory_service.domain.model import Scope
from memory_service.ports import MemoryFilter, PinnedQuery, RequestKey, Transaction
from tests.builders.memories import NOW, memory
from tests.contract.memory_service.memory_stores import Stores, created
from tests.fakes.clock import FakeClock, FakeIds
from tests.services.mariadb import MariaDB

Sql = tuple[SqlMemoryStore, Stores]
ASKED = PinnedQuery(scope=Scope(user_id="u1"), now=NOW)


def connection_id(connection: Connection) -> int:
    return int(connection.execute(text("SELECT CONNECTION_ID()")).scalar_one())


@pytest.mark.mariadb
async def test_killed_idle_connections_are_replaced_unseen(
    mariadb_sql: Sql, mariadb_server: MariaDB
) -> None:
    store, stores = mariadb_sql
    await asyncio.gather(*(stores.keep(memory(f"m{n}")) for n in range(8)))
    ours = text(
        "SELECT id FROM information_schema.processlist"
        " WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    )
    with store.database.engine.connect() as connection:
        ids = [*connection.scalars(ours), connection_id(connection)]
    for each in ids:
        mariadb_server.execute(f"KILL {each}")
    assert ids
    assert len(await stores.reader.page("u1", MemoryFilter(), before="", limit=9)) == 8
    await stores.keep(memory("m8"))


@pytest.mark.mariadb
async def test_connections_that_the_server_timed_out_are_replaced_unseen(
    mariadb_sql: Sql,
) -> None:
    store, stores = mariadb_sql
    with store.database.engine.connect() as connection:
        connection.execute(text("SET SESSION wait_timeout=1"))
    await asyncio.sleep(2)
    await stores.keep(memory("m1"))
    assert (await stores.reader.view(ASKED)).state.revision == 1


@pytest.mark.mariadb
async def test_a_write_whose_connection_dies_before_the_commit_happens_once(
    mariadb_sql: Sql, mariadb_server: MariaDB
) -> None:
    store, stores = mariadb_sql
    attempts: list[int] = []

    def work(transaction: Transaction) -> bytes:
        attempts.append(transaction.state.revision)
        transaction.put(created(memory("m1")))
        if len(attempts) == 1:
            inner = transaction._connection  # type: ignore[attr-defined]
            mariadb_server.execute(f"KILL {connection_id(inner)}")
        return b"answer"

    key = RequestKey("r1", "CreateMemory", b"d")
    assert await stores.writer.once("u1", key, work) == b"answer"
    assert attempts == [1, 1]
    assert (await stores.reader.stats("u1")).revision == 1
    assert in_snapshot(
        store.database.engine, lambda c: len(c.execute(select(memory_history)).all())
    )


@pytest.mark.mariadb
async def test_a_request_whose_commit_was_lost_on_the_way_back_is_known_the_second_time(
    mariadb_sql: Sql, mariadb_server: MariaDB
) -> None:
    store, stores = mariadb_sql
    attempts: list[int] = []

    def work(transaction: Transaction) -> bytes:
        attempts.append(1)
        transaction.put(created(memory("m1")))
        return b"answer"

    engine = store.database.engine

    def lose_the_answer(connection: Connection) -> None:
        if not lost:
            lost.append(1)
            driver = connection.connection.driver_connection
            driver.commit()  # type: ignore[union-attr]
            mariadb_server.execute(f"KILL {driver.thread_id()}")  # type: ignore[union-attr]

    lost: list[int] = []
    event.listen(engine, "commit", lose_the_answer)
    key = RequestKey("r1", "CreateMemory", b"d")
    assert await stores.writer.once("u1", key, work) == b"answer"
    event.remove(engine, "commit", lose_the_answer)
    assert (lost, attempts) == ([1], [1])
    assert (await stores.reader.stats("u1")).revision == 1


async def test_a_snapshot_is_one_moment_and_the_next_one_is_fresh(sql: Sql) -> None:
    store, stores = sql
    await stores.keep(memory("m1"))
    engine = store.database.engine

    def revision(connection: Connection) -> int:
        row = connection.execute(select(memory_user_states.c.revision)).scalar_one()
        return int(row)

    def raise_elsewhere() -> None:
        def work(connection: Connection) -> None:
            connection.execute(update(memory_user_states).values(revision=7))

        in_transaction(engine, work)

    def work(connection: Connection) -> tuple[int, int]:
        before = revision(connection)
        other = threading.Thread(target=raise_elsewhere)
        other.start()
        other.join()
        return before, revision(connection)

    assert in_snapshot(engine, work) == (1, 1)
    assert in_snapshot(engine, revision) == 7


@pytest.mark.mariadb
async def test_a_deadlock_runs_the_whole_transaction_again(mariadb_sql: Sql) -> None:
    """Two transactions that lock two rows crosswise: one is rolled back, and runs again."""
    store, stores = mariadb_sql
    await stores.keep(memory("m1"), memory("m2"))
    both = threading.Barrier(2)
    runs: list[str] = []

    def crossing(first: str, second: str) -> Callable[[Connection], None]:
        def work(connection: Connection) -> None:
            runs.append(first)
            lock(connection, first)
            if len(runs) <= 2:
                both.wait(timeout=10)
            lock(connection, second)

        return work

    def lock(connection: Connection, memory_id: str) -> None:
        touched = update(memories).where(memories.c.memory_id == memory_id)
        connection.execute(touched.values(sensitivity_level=memories.c.sensitivity_level + 1))

    await asyncio.gather(
        store.database.write(crossing("m1", "m2")), store.database.write(crossing("m2", "m1"))
    )
    assert len(runs) == 3
    levels = select(memories.c.sensitivity_level)
    assert in_snapshot(store.database.engine, lambda c: c.scalars(levels).all()) == [2, 2]


@pytest.mark.mariadb
async def test_of_two_first_writers_of_a_user_one_is_run_again(mariadb_sql: Sql) -> None:
    _, stores = mariadb_sql
    inserted, runs = threading.Event(), [0]

    def first(transaction: Transaction) -> bytes:
        inserted.set()
        threading.Event().wait(0.5)  # the second waits for this row by then
        return str(transaction.state.revision).encode()

    def second(transaction: Transaction) -> bytes:
        runs[0] += 1
        return str(transaction.state.revision).encode()

    one = asyncio.create_task(stores.writer.once("u1", RequestKey("1", "T", b""), first))
    await asyncio.to_thread(inserted.wait, 10)
    two = stores.writer.once("u1", RequestKey("2", "T", b""), second)
    assert list(await asyncio.gather(one, two)) == [b"1", b"2"]
    assert runs == [1]


async def test_relays_and_writers_at_once_lose_nothing(sql: Sql) -> None:
    _, stores = sql
    rows = await stores.keep(*(memory(f"m{number:02}") for number in range(40)))
    done = asyncio.Event()

    async def relay() -> int:
        told = 0
        while not done.is_set() or await stores.outbox.depth():
            notes = await stores.outbox.claim(limit=7, lease=60, now=stores.clock.now)
            states = dict.fromkeys(notes, memory("x").index_state)
            told += await stores.outbox.told(states, now=stores.clock.now)
        return told

    async def write(part: int) -> None:
        for row in rows[part::4]:
            await stores.change(row, replace(row, title="new", version=2))

    async def write_all() -> None:
        await asyncio.gather(*(write(part) for part in range(4)))
        done.set()

    first, second, _ = await asyncio.gather(relay(), relay(), write_all())
    assert first + second >= 40
    assert await stores.outbox.depth() == 0


async def test_a_store_without_tables_says_what_is_wrong(sql: Sql) -> None:
    """A missing table is a fault of ours, not an outage that passes."""
    store, _ = sql
    with pytest.raises(Exception, match="no_such_table"):
        await store.database.read(lambda c: c.execute(text("SELECT 1 FROM no_such_table")))


async def test_sql_that_does_not_answer_is_unavailable(sql: Sql, tmp_path: Path) -> None:
    store, stores = sql
    url = store.database.engine.url
    gone = url.set(port=1) if url.port else url.set(database=str(tmp_path))
    silent = open_memory_store(
        gone.render_as_string(hide_password=False), clock=stores.clock, new_id=stores.ids
    )
    with pytest.raises(StoreUnavailable):
        await silent.reader.view(ASKED)
    with pytest.raises(StoreUnavailable):
        await silent.writer.touch({"m1": NOW})
    silent.close()


async def test_history_keeps_each_change_with_what_it_was_before(sql: Sql) -> None:
    store, stores = sql
    (row,) = await stores.keep(memory("m1", "喜欢茶 🙂", expire_time=NOW))
    await stores.change(row, replace(row, title="new", version=2))
    kept = in_snapshot(
        store.database.engine,
        lambda c: c.execute(select(memory_history).order_by(memory_history.c.history_id)).all(),
    )
    first, second = kept
    assert (first.operation, first.version, first.revision, first.before) == ("create", 1, 1, None)
    assert (second.operation, second.version, second.revision) == ("update", 2, 2)
    assert second.before == first.after
    assert second.after == first.after | {"title": "new", "version": 2, "revision": 2}
    assert first.after["content"] == "喜欢茶 🙂"
    assert first.after["expire_time"] == NOW.isoformat()
    assert json.dumps(second.after)


async def test_who_listens_hears_whose_transactions_were_committed(sqlite_url: str) -> None:
    heard: list[str] = []
    store = open_memory_store(
        sqlite_url, clock=FakeClock(), new_id=FakeIds(), on_written=heard.append
    )
    await store.writer.once("u1", RequestKey("heard", "Test", b"d"), lambda _: b"")
    await store.writer.change("u2", lambda _: None)
    await store.writer.touch({"m1": NOW})
    with pytest.raises(LookupError):
        await store.writer.change("u3", _failing)
    store.close()
    assert heard == ["u1", "u2"]


def _failing(_: Transaction) -> None:
    raise LookupError
