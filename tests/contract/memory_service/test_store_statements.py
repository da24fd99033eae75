"""The statements themselves: one SQL for all databases, the right index and charset."""

from datetime import timedelta

import pytest
from sqlalchemy import Connection, event, select, text
from sqlalchemy.dialects import mysql

from database.access import in_snapshot
from memory_service.adapters.sql import (
    backfill,
    gates,
    history,
    job_rows,
    jobs,
    marks,
    outbox,
    reader,
    removal,
    snapshot,
    transaction,
    upkeep,
    writer,
)
from memory_service.adapters.sql.schema import memories, metadata
from memory_service.adapters.sql.store import SqlMemoryStore
from memory_service.domain.model import MemoryStatus, MemoryType, Scope, UserSettings
from memory_service.ports import PinnedQuery
from tests.builders.memories import NOW, memory
from tests.contract.memory_service.memory_stores import Stores

Sql = tuple[SqlMemoryStore, Stores]
ASKED = PinnedQuery(scope=Scope(user_id="u1"), now=NOW)


async def test_the_pinned_query_reads_its_index_backwards(sql: Sql) -> None:
    store, stores = sql
    for user in ("u1", "u2"):
        await stores.keep(
            *(
                memory(
                    f"{user}{number:04}",
                    user_id=user,
                    memory_type=list(MemoryType)[number % 4],
                    importance=number / 1000,
                    confidence=0.9,
                    age=timedelta(minutes=number),
                )
                for number in range(1000)
            )
        )
    engine = store.database.engine
    values = gates.gate_values(ASKED, UserSettings())
    for statement, more in (
        (reader.CONSTRAINTS, {}),
        (reader.PREFERENCES, {"preference_limit": 5}),
        (reader.ROWS, {"fingerprint": "use", "rows": 100}),
    ):
        plan = in_snapshot(engine, lambda c, s=statement, m=more: explain(c, s, values | m))  # type: ignore[misc]
        expected = "ix_memories_best" if statement is reader.ROWS else "ix_memories_pinned"
        assert expected in plan, plan
        assert "TEMP B-TREE" not in plan
        assert "filesort" not in plan
        assert "temporary" not in plan


async def test_sweeps_read_indexes_and_not_the_whole_table(sql: Sql) -> None:
    store, stores = sql
    for user in ("u1", "u2"):
        rows = [
            memory(
                f"{user}{number:04}",
                user_id=user,
                status=MemoryStatus.DELETED if number % 10 == 0 else MemoryStatus.ACTIVE,
                expire_time=NOW + timedelta(hours=number) if number % 3 == 0 else None,
            )
            for number in range(1000)
        ]
        await stores.keep(*rows)
    for statement, index, values in (
        (upkeep.EXPIRED, "ix_memories_expiry", {"now": NOW}),
        (upkeep.DELETED, "ix_memories_deleted", {"before": NOW}),
    ):
        plan = in_snapshot(
            store.database.engine,
            lambda c, s=statement, v=values: explain(c, s, v | {"rows": 10}),  # type: ignore[misc]
        )
        assert index in plan, plan


def explain(connection: Connection, statement: object, values: dict[str, object]) -> str:
    if connection.dialect.name == "mysql":
        connection.execute(text("ANALYZE TABLE memories"))
    word = "EXPLAIN" if connection.dialect.name == "mysql" else "EXPLAIN QUERY PLAN"
    explained = statement.prefix_with("/* plan */")  # type: ignore[attr-defined]
    plans: list[str] = []

    def prefix(_c: object, _k: object, sql: str, parameters: object, *_rest: object) -> object:
        return (f"{word} {sql}" if "/* plan */" in sql else sql), parameters

    event.listen(connection, "before_cursor_execute", prefix, retval=True)
    try:
        cursor = connection.execute(explained, values).cursor
        assert cursor is not None
        plans = [str(row) for row in cursor.fetchall()]
    finally:
        event.remove(connection, "before_cursor_execute", prefix)
    return " | ".join(plans)


STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": statement
    for module in (
        *(reader, transaction, writer, outbox, marks, backfill),
        *(jobs, job_rows, history, removal, snapshot, upkeep),
    )
    for name, statement in vars(module).items()
    if name.isupper() and hasattr(statement, "compile")
}


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_each_statement_is_in_the_sql_that_all_of_them_speak(name: str) -> None:
    for dialect in (mysql.dialect(), modern_mysql()):
        compiled = str(STATEMENTS[name].compile(dialect=dialect))
        assert "RETURNING" not in compiled
        assert " AS new" not in compiled
        assert "ON DUPLICATE" not in compiled


def modern_mysql() -> mysql.dialect:  # type: ignore[valid-type]
    dialect = mysql.dialect()
    dialect.server_version_info = (8, 4, 0)
    return dialect


def test_statements_were_found() -> None:
    assert len(STATEMENTS) > 30


@pytest.mark.mariadb
def test_every_table_is_utf8mb4_although_the_database_is_latin1(mariadb_sql: Sql) -> None:
    store, _ = mariadb_sql
    collations = text(
        "SELECT table_name, table_collation FROM information_schema.tables"
        " WHERE table_schema = DATABASE()"
    )
    rows = in_snapshot(store.database.engine, lambda c: c.execute(collations).all())
    assert {name for name, _ in rows} == {*metadata.tables, "memory_schema_version"}
    assert {collation for _, collation in rows} == {"utf8mb4_bin"}
    columns = text(
        "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE()"
        " AND character_set_name IS NOT NULL AND character_set_name <> 'utf8mb4'"
    )
    assert in_snapshot(store.database.engine, lambda c: c.execute(columns).scalar_one()) == 0


def test_ids_longer_than_their_column_are_refused_on_both(sql: Sql) -> None:
    store, _ = sql
    by_id = select(memories.c.memory_id).where(memories.c.user_id == "长" * 43)
    with pytest.raises(Exception, match="129 bytes"):
        in_snapshot(store.database.engine, lambda c: c.execute(by_id).all())
