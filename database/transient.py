"""Which failures of SQL pass by themselves, and how a transaction is run again.

Codes: MySQL and MariaDB error references; SQLite result codes (sqlite.org/rescode.html).
"""

import random
import sqlite3
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

T = TypeVar("T")


class Again(Exception):
    """Raised inside a transaction that lost a race which it wins when it is run again."""


class OutcomeUnknown(Exception):
    """The connection was lost during COMMIT: it may have happened or not."""


class Trouble(Enum):
    """What a failure of SQL means."""

    AGAIN = auto()
    """Rolled back by the database; the same transaction may well succeed."""
    LOST = auto()
    """The connection is gone, and with it an uncommitted transaction."""
    SILENT = auto()
    """SQL does not answer, and asking at once would not help."""
    OURS = auto()
    """Anything else: a broken constraint, a wrong statement, a missing table."""


# Deadlock, lock wait, MariaDB's snapshot conflict (record has changed since last read).
_MYSQL_AGAIN = frozenset({1213, 1205, 1020})
# Shutdown, killed query, killed connection, gone, lost, lost with errno, idle too long.
_MYSQL_LOST = frozenset({0, 1053, 1317, 1927, 2006, 2013, 2055, 4031})
# Too many connections, out of memory or disk, refused login or database, network, read-only,
# unreachable, statement took too long.
_MYSQL_SILENT = frozenset(
    {1021, 1037, 1040, 1041, 1044, 1045, 1049, 1114, 1129, 1158, 1159, 1160, 1161, 1203, 1226}
    | {1290, 1836, 1969, 2002, 2003, 2005, 2026, 3024}
)
_SQLITE_AGAIN = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_SQLITE_SILENT = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
_PRIMARY_CODE = 0xFF


def trouble(error: Exception) -> Trouble:
    """Tell what a failure means."""
    if isinstance(error, Again):
        return Trouble.AGAIN
    if isinstance(error, PoolTimeoutError):
        return Trouble.SILENT
    if not isinstance(error, DBAPIError):
        return Trouble.OURS
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_trouble(error.orig)
    return _mysql_trouble(error)


def _sqlite_trouble(error: sqlite3.Error) -> Trouble:
    # Errors of the module itself (wrong number of values…) carry no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
    if code in _SQLITE_AGAIN:
        return Trouble.AGAIN
    return Trouble.SILENT if code in _SQLITE_SILENT else Trouble.OURS


def _mysql_trouble(error: DBAPIError) -> Trouble:
    arguments = error.orig.args if error.orig is not None else ()
    code = arguments[0] if arguments else None
    if code in _MYSQL_AGAIN:
        return Trouble.AGAIN
    if error.connection_invalidated or code in _MYSQL_LOST:
        return Trouble.LOST
    return Trouble.SILENT if code in _MYSQL_SILENT else Trouble.OURS


def run_again(
    transaction: Callable[[], T],
    *,
    unavailable: Callable[[str], Exception],
    repeatable: bool = False,
    attempts: int = 10,
    within: float = 5.0,
) -> T:
    """Run a whole transaction, and again after trouble that passes, with growing random pauses.

    transaction opens its own connection and leaves nothing when it raises. repeatable: running it
    again after it was committed does no harm, so OutcomeUnknown is run again too. No attempt
    starts later than within seconds. Raises unavailable(text) when SQL does not answer, and
    everything else as it comes.
    """
    end = time.monotonic() + within
    attempt = 0
    while True:
        attempt += 1
        try:
            return transaction()
        except (Again, OutcomeUnknown, DBAPIError, PoolTimeoutError) as error:
            may_pass = _may_pass(error, repeatable=repeatable)
            if may_pass is None:
                raise
            pause = random.uniform(0, min(0.5, 0.005 * 2**attempt))  # noqa: S311 — jitter
            if not may_pass or attempt >= attempts or time.monotonic() + pause > end:
                message = "SQL did not answer"
                raise unavailable(message) from error
        time.sleep(pause)


def _may_pass(error: Exception, *, repeatable: bool) -> bool | None:
    """Tell whether running again may help; None: not a matter of SQL answering."""
    if isinstance(error, OutcomeUnknown):
        return repeatable
    found = trouble(error)
    return None if found is Trouble.OURS else found is not Trouble.SILENT
