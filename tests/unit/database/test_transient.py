"""Which failures pass, and how often a transaction runs."""

import sqlite3
from collections.abc import Callable, Iterator

import pymysql
import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from database.transient import Again, OutcomeUnknown, Trouble, run_again, trouble


class Silent(Exception):
    """What a service raises when SQL does not answer."""


def mysql_error(code: int, *, invalidated: bool = False) -> DBAPIError:
    original = pymysql.err.OperationalError(code, "text")
    return OperationalError("SELECT 1", None, original, connection_invalidated=invalidated)


def sqlite_error(code: int | None) -> DBAPIError:
    original = sqlite3.OperationalError("text")
    if code is not None:
        original.sqlite_errorcode = code
    return OperationalError("SELECT 1", None, original)


DUPLICATE = IntegrityError("INSERT", None, pymysql.err.IntegrityError(1062, "Duplicate entry"))
BUSY = sqlite_error(sqlite3.SQLITE_BUSY)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Again(), Trouble.AGAIN),
        (mysql_error(1213), Trouble.AGAIN),
        (mysql_error(1205), Trouble.AGAIN),
        (mysql_error(1020), Trouble.AGAIN),
        (BUSY, Trouble.AGAIN),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), Trouble.AGAIN),
        (mysql_error(2013), Trouble.LOST),
        (mysql_error(2006), Trouble.LOST),
        (mysql_error(1927), Trouble.LOST),
        (mysql_error(9999, invalidated=True), Trouble.LOST),
        (mysql_error(2003), Trouble.SILENT),
        (mysql_error(1040), Trouble.SILENT),
        (mysql_error(1969), Trouble.SILENT),
        (sqlite_error(sqlite3.SQLITE_IOERR_READ), Trouble.SILENT),
        (sqlite_error(sqlite3.SQLITE_FULL), Trouble.SILENT),
        (PoolTimeoutError(), Trouble.SILENT),
        (sqlite_error(sqlite3.SQLITE_ERROR), Trouble.OURS),
        (sqlite_error(None), Trouble.OURS),
        (mysql_error(1054), Trouble.OURS),
        (DUPLICATE, Trouble.OURS),
        (DBAPIError("SELECT 1", None, pymysql.err.InterfaceError()), Trouble.OURS),
        (ValueError(), Trouble.OURS),
    ],
)
def test_each_failure_means_something(error: Exception, expected: Trouble) -> None:
    assert trouble(error) is expected


def failing(*errors: Exception) -> Callable[[], str]:
    steps: Iterator[Exception] = iter(errors)

    def transaction() -> str:
        for error in steps:
            raise error
        return "done"

    return transaction


@pytest.mark.parametrize("error", [BUSY, mysql_error(1213), mysql_error(2013), Again()])
def test_trouble_that_passes_is_run_again(error: Exception) -> None:
    assert run_again(failing(error, error), unavailable=Silent) == "done"


def test_it_is_run_again_a_bounded_number_of_times() -> None:
    with pytest.raises(Silent):
        run_again(failing(BUSY, BUSY, BUSY), unavailable=Silent, attempts=3)
    assert run_again(failing(BUSY, BUSY), unavailable=Silent, attempts=3) == "done"


def test_no_attempt_starts_after_its_time() -> None:
    with pytest.raises(Silent):
        run_again(failing(BUSY), unavailable=Silent, within=-1.0)


def test_silence_is_not_asked_again() -> None:
    silence = mysql_error(2003)
    with pytest.raises(Silent) as raised:
        run_again(failing(silence), unavailable=Silent)
    assert raised.value.__cause__ is silence
    assert "SELECT" not in str(raised.value)


@pytest.mark.parametrize("error", [DUPLICATE, mysql_error(1054), ValueError("a refusal")])
def test_what_is_no_matter_of_sql_answering_comes_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)):
        run_again(failing(error), unavailable=Silent)


def test_an_unknown_outcome_is_run_again_only_if_that_does_no_harm() -> None:
    with pytest.raises(Silent):
        run_again(failing(OutcomeUnknown()), unavailable=Silent)
    assert run_again(failing(OutcomeUnknown()), unavailable=Silent, repeatable=True) == "done"
