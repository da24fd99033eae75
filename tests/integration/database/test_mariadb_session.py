"""What a connection to MariaDB is set to, and what lost connections look like."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DataError

from database.access import Database, in_snapshot, in_transaction
from database.engine import open_engine
from tests.services.mariadb import MariaDB

pytestmark = pytest.mark.mariadb
COUNT = text("SELECT COUNT(*) FROM t")


class Silent(Exception):
    """What a service raises when SQL does not answer."""


@pytest.fixture
def database(mariadb_server: MariaDB) -> Iterator[Database]:
    engine = open_engine(mariadb_server.url(), pool_size=16, statement_timeout=1.0)
    database = Database(engine, unavailable=Silent, threads=16)
    table = "CREATE TABLE t (id VARBINARY(3) PRIMARY KEY, n INT NOT NULL) CHARSET utf8mb4"
    in_transaction(engine, lambda c: c.execute(text(table)))
    yield database
    database.close()


def test_the_session_is_strict_utf8mb4_and_reads_what_is_committed(database: Database) -> None:
    asked = "@@sql_mode, @@tx_isolation, @@character_set_client, @@innodb_lock_wait_timeout"
    row = in_transaction(database.engine, lambda c: c.execute(text(f"SELECT {asked}")).one())
    assert "STRICT_ALL_TABLES" in row[0]
    assert tuple(row[1:]) == ("READ-COMMITTED", "utf8mb4", 5)


def test_nothing_is_cut_to_fit(database: Database) -> None:
    with pytest.raises(DataError):
        in_transaction(
            database.engine, lambda c: c.execute(text("INSERT INTO t VALUES ('four', 1)"))
        )


async def test_a_statement_that_takes_too_long_is_silence(database: Database) -> None:
    slow = text("SELECT SLEEP(30)")
    with pytest.raises(Silent):
        await database.read(lambda c: c.execute(slow).all())


async def test_a_lost_commit_is_silence_unless_the_work_may_be_repeated(
    database: Database, mariadb_server: MariaDB
) -> None:
    kills: list[int] = []

    def kill(connection: Connection) -> None:
        if not kills:
            thread = connection.connection.driver_connection.thread_id()  # type: ignore[union-attr]
            kills.append(thread)
            mariadb_server.execute(f"KILL {thread}")

    event.listen(database.engine, "commit", kill)
    insert = text("INSERT IGNORE INTO t VALUES ('a', 1)")
    with pytest.raises(Silent):
        await database.write(lambda c: c.execute(insert))
    kills.clear()
    await database.write(lambda c: c.execute(insert), repeatable=True)
    assert await database.read(lambda c: c.execute(COUNT).scalar_one()) == 1


def test_sixteen_first_upserts_all_succeed(database: Database) -> None:
    upsert = text("INSERT INTO t VALUES (:id, 1) ON DUPLICATE KEY UPDATE n = n + 1")
    failures: list[BaseException] = []
    together = threading.Barrier(16)

    def run(number: int) -> None:
        together.wait()
        for key in range(20):
            try:
                in_transaction(database.engine, lambda c, k=key: c.execute(upsert, {"id": f"{k}"}))  # type: ignore[misc]
            except BaseException as error:  # noqa: BLE001 — shown by the test
                failures.append(error)
        del number

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = text("SELECT COUNT(*), SUM(n) FROM t")
    assert failures == []
    assert tuple(in_snapshot(database.engine, lambda c: c.execute(total).one())) == (20, 320)
