"""What only SQL can get wrong."""

import asyncio
from datetime import timedelta

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, insert, inspect, select, update
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateTable

from agent_service.adapters.sql.migrate import MIGRATIONS
from agent_service.adapters.sql.schema import (
    conversations,
    learn_outbox,
    metadata,
    timeline_events,
    turn_events,
    turns,
)
from agent_service.adapters.sql.turn_rows import insert_or_lose
from agent_service.domain.errors import LeaseLost, StoreUnavailable, TurnRunning
from agent_service.domain.model import Delta
from agent_service.ports import TurnOpened
from agent_service.v1 import agent_pb2 as pb
from database.access import Database
from database.engine import open_engine
from database.transient import Again
from tests.builders.agent_turns import NOON, closing, events, new_turn
from tests.contract.agent_service.agent_stores import Stores, sql_stores

LATER = NOON + timedelta(minutes=1)


async def opened(stores: Stores, turn_id: str = "t1") -> TurnOpened:
    outcome = await stores.turns.open(new_turn(turn_id))
    assert isinstance(outcome, TurnOpened)
    return outcome


def test_the_migrations_make_the_schema(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": "agent_schema_version"}
        )
        assert compare_metadata(context, metadata) == []
        assert MIGRATIONS.is_current(database.engine)


def test_every_table_says_its_character_set() -> None:
    for table in metadata.sorted_tables:
        made = str(CreateTable(table).compile(dialect=mysql.dialect()))
        assert "utf8mb4" in made


def test_the_migrations_can_be_taken_back_and_run_again(database: Database) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    MIGRATIONS.downgrade(url, "base")
    with database.engine.connect() as connection:
        left = set(inspect(connection).get_table_names()) & set(metadata.tables)
    MIGRATIONS.upgrade(url)

    assert left == set()
    assert MIGRATIONS.is_current(database.engine)


async def test_no_connection_is_held_between_calls(database: Database) -> None:
    stores = sql_stores(database)
    lease = (await opened(stores)).lease
    await stores.turns.append(lease, events(Delta("a")))
    with pytest.raises(TurnRunning):
        await stores.turns.open(new_turn("t2"))

    assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


async def test_many_streams_share_two_connections(database: Database) -> None:
    small = Database(
        open_engine(database.engine.url.render_as_string(hide_password=False), pool_size=2),
        unavailable=StoreUnavailable,
        threads=2,
    )
    stores = sql_stores(small)
    leases = []
    for number in range(10):
        outcome = await stores.turns.open(new_turn(f"t{number}", conversation_id=f"c{number}"))
        assert isinstance(outcome, TurnOpened)
        leases.append(outcome.lease)
    await asyncio.gather(*(stores.turns.append(lease, events(Delta("a"))) for lease in leases))

    assert (await stores.conversations.meta("ann", "c7")).message_count == 1
    small.close()


async def test_a_lost_turn_is_closed_once_however_many_meet_it(database: Database) -> None:
    stores = sql_stores(database)
    await opened(stores)

    closed = await asyncio.gather(*(stores.turns.close_expired(LATER, limit=5) for _ in range(4)))

    assert sum(closed) == 1
    assert len(await stores.learnings()) == 1


async def test_a_turn_closed_meanwhile_is_not_closed_again(database: Database) -> None:
    stores = sql_stores(database)
    lease = (await opened(stores)).lease
    swept, closed = await asyncio.gather(
        stores.turns.close_expired(LATER, limit=5),
        stores.turns.close(lease, closing()),
        return_exceptions=True,
    )

    assert isinstance(closed, LeaseLost) if swept else closed is None
    assert len(await stores.learnings()) == 1


async def test_a_row_that_another_inserted_first_is_looked_for_again(database: Database) -> None:
    stores = sql_stores(database)
    await opened(stores)

    def work(connection: Connection) -> None:
        row = connection.execute(select(conversations)).one()._asdict()
        with pytest.raises(Again):
            insert_or_lose(connection, conversations, row)

    await database.write(work)


async def test_a_conversation_that_is_gone_has_lost_its_turn(database: Database) -> None:
    stores = sql_stores(database)
    lease = (await opened(stores)).lease
    await database.write(lambda connection: connection.execute(conversations.delete()))

    with pytest.raises(LeaseLost):
        await stores.turns.close(lease, closing())
    assert await stores.turns.close_expired(LATER, limit=5) == 0


async def test_what_a_newer_version_stored_does_not_break_reading(database: Database) -> None:
    stores = sql_stores(database)
    lease = (await opened(stores)).lease
    stage = pb.ChatEvent(seq=2, stage=pb.Stage(name="plan")).SerializeToString()
    call = pb.TimelineEvent(tool_call=pb.ToolCall(name="x")).SerializeToString()

    def store(connection: Connection) -> None:
        connection.execute(insert(turn_events).values(turn_id="t1", seq=2, event=stage))

    def change(connection: Connection) -> None:
        connection.execute(
            update(timeline_events).where(timeline_events.c.seq == 1).values(event=call)
        )

    await database.write(store)
    await stores.turns.append(lease, events(Delta("a"), after=2))
    await database.write(change)

    found = await stores.turns.events("ann", "c1", "t1", after_seq=1, now=NOON)
    assert [event.seq for event in found] == [3]
    timeline = await stores.conversations.timeline("ann", "c1", after=0, before=None, limit=9)
    assert [(event.seq, event.event) for event in timeline] == [(1, None)]


async def test_the_outbox_row_is_ready_to_be_delivered(database: Database) -> None:
    stores = sql_stores(database)
    lease = (await opened(stores)).lease
    await stores.turns.close(lease, closing(answer="🙂", now=LATER))

    row = await database.read(lambda connection: connection.execute(select(learn_outbox)).one())
    assert (row.state, row.attempt, row.request_id) == ("pending", 0, "t1")
    assert row.messages == [
        {"role": "user", "content": "Hello", "create_time": NOON.isoformat(), "timezone": ""},
        {"role": "assistant", "content": "🙂", "create_time": LATER.isoformat(), "timezone": ""},
    ]


async def test_the_lease_row_says_who_holds_it(database: Database) -> None:
    stores = sql_stores(database)
    lease = (await opened(stores)).lease
    await stores.turns.heartbeat(lease, LATER)

    row = await database.read(lambda connection: connection.execute(select(turns)).one())
    assert (row.lease_owner, row.state, row.heartbeat_time) == ("test", "running", LATER)


async def test_a_database_that_is_silent_is_said_to_be() -> None:
    database = Database(
        open_engine("mysql+pymysql://root@127.0.0.1:1/none", connect_timeout=1),
        unavailable=StoreUnavailable,
    )
    stores = sql_stores(database)

    with pytest.raises(StoreUnavailable):
        await stores.turns.open(new_turn())
    with pytest.raises(StoreUnavailable):
        await stores.conversations.meta("ann", "c1")
    database.close()
