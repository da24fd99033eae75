"""What each column type does to values, for both kinds of database."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sqlalchemy import Dialect
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.schema import CreateTable, MetaData, Table
from sqlalchemy.sql.schema import Column
from sqlalchemy.types import TypeEngine

from database.types import (
    TABLE_OPTIONS,
    Json,
    Key,
    LongBytes,
    LongText,
    Real,
    Serial,
    UtcTime,
)

DIALECTS: list[Dialect] = [sqlite.dialect(), mysql.dialect()]
on_both = pytest.mark.parametrize("dialect", DIALECTS, ids=["sqlite", "mysql"])
ZONES = some.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
JSON = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.text()
    | some.floats(allow_nan=False, allow_infinity=False),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
)


def bound(kind: TypeEngine[Any], dialect: Dialect, value: object) -> Any:
    processor = kind.bind_processor(dialect)
    return processor(value) if processor else value


def there_and_back(kind: TypeEngine[Any], dialect: Dialect, value: object) -> Any:
    processor = kind.result_processor(dialect, None)
    stored = bound(kind, dialect, value)
    return processor(stored) if processor else stored


@on_both
@settings(deadline=None)
@given(text=some.text(max_size=30))
def test_a_key_comes_back_byte_for_byte(dialect: Dialect, text: str) -> None:
    assert there_and_back(Key(128), dialect, text) == text
    assert there_and_back(Key(128), dialect, None) is None


@on_both
def test_a_key_is_measured_in_bytes_on_both(dialect: Dialect) -> None:
    assert there_and_back(Key(6), dialect, "喜欢") == "喜欢"
    with pytest.raises(ValueError, match="7 bytes where 6"):
        bound(Key(6), dialect, "喜欢!")


@on_both
@settings(deadline=None)
@given(time=some.datetimes(datetime(1900, 1, 1), datetime(3000, 1, 1), timezones=ZONES))  # noqa: DTZ001
def test_a_time_of_any_zone_is_the_same_moment_in_utc(dialect: Dialect, time: datetime) -> None:
    read = there_and_back(UtcTime(), dialect, time)
    assert read == time
    assert read.utcoffset() == timedelta(0)
    assert there_and_back(UtcTime(), dialect, None) is None


@on_both
def test_a_time_without_a_zone_is_refused(dialect: Dialect) -> None:
    with pytest.raises(ValueError, match="zone"):
        bound(UtcTime(), dialect, datetime(2026, 1, 1))  # noqa: DTZ001


@settings(deadline=None)
@given(times=some.lists(some.datetimes(timezones=some.just(UTC)), max_size=9))
def test_stored_times_sort_as_text_on_sqlite(times: list[datetime]) -> None:
    stored = [bound(UtcTime(), DIALECTS[0], time) for time in times]
    assert sorted(stored) == [bound(UtcTime(), DIALECTS[0], time) for time in sorted(times)]


@on_both
@settings(deadline=None)
@given(value=JSON)
def test_json_comes_back_as_it_was(dialect: Dialect, value: object) -> None:
    assert there_and_back(Json(), dialect, value) == value


@on_both
def test_json_has_no_word_for_nan(dialect: Dialect) -> None:
    with pytest.raises(ValueError, match="JSON"):
        bound(Json(), dialect, {"x": float("nan")})


def test_tables_hold_long_text_and_bytes_and_every_character_on_mysql() -> None:
    table = Table(
        "t",
        MetaData(),
        Column("a", Serial, primary_key=True),
        Column("b", Key(128)),
        Column("c", UtcTime()),
        Column("d", Json()),
        Column("e", LongText),
        Column("f", LongBytes),
        Column("g", Real),
        **TABLE_OPTIONS,
    )
    ddl = str(CreateTable(table).compile(dialect=DIALECTS[1]))
    kinds = [
        "BIGINT",
        "VARBINARY(128)",
        "DATETIME(6)",
        "MEDIUMTEXT",
        "MEDIUMTEXT",
        "MEDIUMBLOB",
        "DOUBLE",
    ]
    for name, kind in zip("abcdefg", kinds, strict=True):
        assert f"{name} {kind}" in ddl
    assert "CHARSET=utf8mb4" in ddl
    assert "COLLATE utf8mb4_bin" in ddl.replace("=", " ")
    on_sqlite = str(CreateTable(table).compile(dialect=DIALECTS[0]))
    assert "a INTEGER" in on_sqlite
    assert 'b TEXT COLLATE "BINARY"' in on_sqlite
