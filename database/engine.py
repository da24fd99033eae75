"""Engines for the two kinds of database: a SQLite file, and MySQL or MariaDB by pymysql.

A plain transaction writes. One with the execution option READS=True is a snapshot: all its
statements see the database as it was at the first one.
"""

import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.pool import ConnectionPoolEntry

READS = "reads"
"""Execution option of a connection whose transaction only reads."""

_MYSQL_DRIVERS = frozenset({"mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql"})
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SQL_MODE = "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"


def open_engine(
    url: str,
    *,
    pool_size: int = 8,
    connect_timeout: float = 5.0,
    lock_timeout: float = 5.0,
    statement_timeout: float = 10.0,
) -> Engine:
    """Give an engine with at most pool_size connections; connects at first use.

    SQLite (a file; its folder is made): WAL, foreign keys, every commit on the disk, writers wait
    lock_timeout seconds for each other and take the lock when they begin. MySQL and MariaDB:
    utf8mb4, READ COMMITTED, no silent truncation, dead connections replaced unseen;
    statement_timeout seconds bound a statement on both ends (0: no bound, for migrations).
    Raises ValueError for any other URL.
    """
    target = make_url(url)
    if target.drivername in _MYSQL_DRIVERS:
        return _mysql(target, pool_size, connect_timeout, lock_timeout, statement_timeout)
    if target.get_backend_name() == "sqlite":
        return _sqlite(target, pool_size, lock_timeout)
    message = f"neither a SQLite nor a MySQL or MariaDB address: {target.drivername}"
    raise ValueError(message)


def _sqlite(url: URL, pool_size: int, lock_timeout: float) -> Engine:
    if not url.database or url.database == ":memory:":
        message = "a SQLite address must name a file: an in-memory one is not shared by threads"
        raise ValueError(message)
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        # None: the driver opens no transaction by itself, _begin_sqlite does.
        connect_args={"timeout": lock_timeout, "isolation_level": None},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    # NORMAL would lose the last acknowledged commits when the power fails.
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    # One copy of the file's pages for all connections, where each has 2 MB of its own.
    connection.execute("PRAGMA mmap_size=268435456")


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get(READS):
        # Straight to the driver: it cannot fail, and a read has half a millisecond.
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)  # noqa: S101 — for the type checker
        driver.execute("BEGIN")
    else:
        # A writer that began deferred could not wait for another: SQLITE_BUSY at its first write.
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _mysql(
    url: URL,
    pool_size: int,
    connect_timeout: float,
    lock_timeout: float,
    statement_timeout: float,
) -> Engine:
    engine = create_engine(
        # One dialect name for both, so that types and statements have one variant.
        url.set(drivername="mysql+pymysql").update_query_dict({"charset": "utf8mb4"}),
        isolation_level="READ COMMITTED",
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=connect_timeout,
        pool_pre_ping=True,
        pool_recycle=1800,
        connect_args={
            "connect_timeout": connect_timeout,
            # The server gives up first; this one is for a server that is gone.
            "read_timeout": statement_timeout + 1 if statement_timeout else None,
            "write_timeout": statement_timeout + 1 if statement_timeout else None,
            "init_command": _session(lock_timeout, statement_timeout),
        },
    )
    event.listen(engine, "begin", _begin_mysql)
    return engine


def _session(lock_timeout: float, statement_timeout: float) -> str:
    """Give the session's settings; each server skips the comment that is for the other."""
    return (
        f"SET SESSION sql_mode='{_SQL_MODE}'"
        f", innodb_lock_wait_timeout={max(1, round(lock_timeout))}"
        f" /*M!100108 , max_statement_time={statement_timeout} */"
        f" /*!50708 , max_execution_time={round(statement_timeout * 1000)} */"
    )


def _begin_mysql(connection: Connection) -> None:
    if connection.get_execution_options().get(READS):
        connection.exec_driver_sql(_SNAPSHOT)
