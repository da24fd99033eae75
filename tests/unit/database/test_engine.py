"""Addresses: which are taken, and what a SQLite file is set to."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from database.access import Database, in_snapshot, in_transaction
from database.engine import open_engine
from database.transient import run_again


class Silent(Exception):
    """What a service raises when SQL does not answer."""


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("postgresql://localhost/x", "neither a SQLite nor"),
    ],
)
def test_other_addresses_are_refused_in_one_line(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        open_engine(url)


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql"])
def test_every_name_of_mysql_is_the_same_driver_and_dialect(scheme: str) -> None:
    engine = open_engine(f"{scheme}://u:p@127.0.0.1:1/db")
    assert (engine.dialect.name, engine.driver) == ("mysql", "pymysql")
    assert engine.url.query["charset"] == "utf8mb4"


def test_a_sqlite_file_is_made_with_its_folder_and_survives_power_loss(tmp_path: Path) -> None:
    file = tmp_path / "a b" / "c%d" / "memory.db"
    engine = open_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }
    assert file.exists()


async def test_a_write_rolls_back_when_work_refuses(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'x.db'}", pool_size=2)
    database = Database(engine, unavailable=Silent, threads=2)
    await database.write(lambda c: c.execute(text("CREATE TABLE t (n INTEGER)")))

    def refusing(connection: Connection) -> None:
        connection.execute(text("INSERT INTO t VALUES (1)"))
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(refusing)
    count = text("SELECT COUNT(*) FROM t")
    assert await database.read(lambda c: c.execute(count).scalar_one()) == 0
    await database.read(lambda c: c.execute(text("SELECT 1")))
    database.close()


def test_what_a_snapshot_writes_is_lost(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'x.db'}")
    in_transaction(engine, lambda c: c.execute(text("CREATE TABLE t (n INTEGER)")))
    in_snapshot(engine, lambda c: c.execute(text("INSERT INTO t VALUES (1)")))
    count = text("SELECT COUNT(*) FROM t")
    assert in_snapshot(engine, lambda c: c.execute(count).scalar_one()) == 0


def test_a_writer_that_waits_too_long_for_another_is_silence(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    slow, impatient = open_engine(url), open_engine(url, lock_timeout=0.01)
    held, release = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE t (n INTEGER)"))
        held.set()
        release.wait(20)

    holder = threading.Thread(target=in_transaction, args=(slow, hold))
    holder.start()
    held.wait(20)
    with pytest.raises(Silent):
        run_again(
            lambda: in_transaction(impatient, lambda c: c.execute(text("SELECT 1"))),
            unavailable=Silent,
            attempts=2,
        )
    release.set()
    holder.join()
    assert in_snapshot(slow, lambda c: c.execute(text("SELECT COUNT(*) FROM t")).scalar_one()) == 0
