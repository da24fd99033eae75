"""What only a server can get wrong in the outbox: locks, plans, races, and the way up to it."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import ClauseElement, Executable, delete, inspect, select
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import OperationalError

from agent_service.adapters.sql import learn_rows, outbox
from agent_service.adapters.sql.learn_rows import NEXT, ask_to_learn, wake
from agent_service.adapters.sql.migrate import MIGRATIONS
from agent_service.adapters.sql.outbox import AHEAD, DUE, OLD, PARKED_TURNS, WAITING
from agent_service.adapters.sql.schema import learn_outbox, learn_queues, turns
from agent_service.adapters.sql.turns import SqlTurnStore
from agent_service.domain.errors import StoreUnavailable
from agent_service.ports import TurnOpened
from database.access import Database, in_snapshot
from database.engine import open_engine
from tests.builders.agent_turns import NOON, closing, new_turn
from tests.contract.agent_service.agent_stores import empty, sql_stores
from tests.contract.agent_service.test_learn_outbox import claim, claimed, ended, names
from tests.contract.memory_service.test_store_statements import explain
from tests.fakes.clock import FakeIds


@pytest.mark.mariadb
async def test_ends_of_one_user_are_numbered_as_they_are_committed(mariadb_url: str) -> None:
    """Else a relay could deliver the later one while the earlier one is still uncommitted."""
    mariadb = Database(open_engine(mariadb_url), unavailable=StoreUnavailable)
    empty(mariadb.engine)
    stores = sql_stores(mariadb)
    await stores.turns.open(new_turn("t1"))
    await ended(stores, "t0")  # now the user has a queue
    with mariadb.engine.connect() as earlier, mariadb.engine.connect() as later:
        wake(earlier, "ann", NOON)  # the end of another turn of hers, not committed yet
        turn = later.execute(select(turns).where(turns.c.turn_id == "t1")).one()
        later.exec_driver_sql("SET SESSION innodb_lock_wait_timeout=0")
        with pytest.raises(OperationalError, match="Lock wait timeout"):
            ask_to_learn(later, turn, "", NOON)
        later.rollback()
        await ended(stores, "b1", "bob")  # others do not wait
        assert names(await claim(stores)) == ["b1"]  # and she is passed over
        earlier.rollback()
    assert names(await claim(stores)) == ["t0"]
    mariadb.close()


async def test_first_ends_of_one_user_at_once_make_one_queue(database: Database) -> None:
    stores = sql_stores(database)
    await asyncio.gather(*(ended(stores, f"t{number}") for number in range(4)))
    delivered = []
    while found := await claim(stores):
        assert len(found) == 1
        delivered.append(found[0].turn.turn_id)
        await stores.outbox.delivered(found[0], now=NOON)
    numbers = await database.read(
        lambda c: c.scalars(select(learn_outbox.c.turn_id).order_by(learn_outbox.c.outbox_id)).all()
    )
    assert delivered == numbers
    assert len(delivered) == 4


async def test_a_queue_whose_turns_are_gone_is_not_looked_at_again(database: Database) -> None:
    stores = sql_stores(database)
    await ended(stores, "t1")
    await database.write(lambda connection: connection.execute(delete(learn_outbox)))
    assert await claim(stores) == []
    due = await database.read(lambda connection: connection.scalar(select(learn_queues.c.due_time)))
    assert due is None


async def test_nothing_of_what_was_said_stays_in_a_delivered_row(database: Database) -> None:
    stores = sql_stores(database)
    await ended(stores, "t1")
    await stores.outbox.delivered(await claimed(stores), now=NOON)
    row = await database.read(lambda connection: connection.execute(select(learn_outbox)).one())
    assert (row.state, row.messages, row.turn_id) == ("done", [], "t1")


async def test_the_statements_find_their_rows_by_an_index(database: Database) -> None:
    stores = sql_stores(database)
    for number in range(20):
        await ended(stores, f"t{number}", f"u{number}")
        if number < 10:
            await stores.outbox.delivered((await claim(stores))[0], now=NOON)
    later = NOON + timedelta(days=1)
    for statement, values, index in (
        (DUE, {"now": NOON, "rows": 5}, "learn_queues_due"),
        (AHEAD, {"latest": NOON, "rows": 5}, "learn_queues_due"),
        (NEXT, {"its_user": "u19"}, "learn_outbox_next"),
        (WAITING, {}, "learn_outbox_by_state"),
        (OLD, {"before": later, "rows": 5}, "learn_outbox_by_state"),
        (PARKED_TURNS, {"rows": 5}, "learn_outbox_by_state"),
    ):
        plan = in_snapshot(
            database.engine,
            lambda c, s=statement, v=values: explain(c, s, v),  # type: ignore[misc]
        )
        assert index in plan, plan
        if statement is not WAITING:
            assert "TEMP B-TREE" not in plan
            assert "filesort" not in plan


async def test_ends_that_are_stored_are_told_to_the_relay_of_the_process(
    database: Database,
) -> None:
    ended_here: list[str] = []
    store = SqlTurnStore(
        database,
        FakeIds(),
        owner="test",
        lease=timedelta(seconds=10),
        on_end=lambda: ended_here.append("end"),
    )
    opened = await store.open(new_turn("t1"))
    assert isinstance(opened, TurnOpened)
    assert ended_here == []
    await store.close(opened.lease, closing())
    assert ended_here == ["end"]
    await store.open(new_turn("t2", now=NOON))
    assert await store.close_expired(NOON, limit=9) == 0
    assert await store.close_expired(NOON + timedelta(minutes=1), limit=9) == 1
    assert ended_here == ["end", "end"]


def test_the_statements_are_sql_that_mysql_knows() -> None:
    statements = [
        value
        for module in (learn_rows, outbox)
        for value in vars(module).values()
        if isinstance(value, ClauseElement) and isinstance(value, Executable)
    ]
    texts = [str(statement.compile(dialect=mysql.dialect())) for statement in statements]
    assert len(texts) > 12
    assert sum("SKIP LOCKED" in text for text in texts) >= 2
    assert not any("RETURNING" in text for text in texts)


async def test_turns_that_waited_before_there_were_queues_are_delivered(
    database: Database,
) -> None:
    stores = sql_stores(database)
    for number, user in enumerate(("ann", "ann", "bob")):
        await ended(stores, f"t{number}", user)
    await stores.outbox.delivered((await claim(stores))[1], now=NOON)
    url = database.engine.url.render_as_string(hide_password=False)
    MIGRATIONS.downgrade(url, "0001")
    with database.engine.connect() as connection:
        assert not inspect(connection).has_table("learn_queues")
        connection.rollback()
    MIGRATIONS.upgrade(url)
    assert names(await claim(stores)) == ["t0"]
