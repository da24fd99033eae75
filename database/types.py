"""Column types that mean the same on SQLite and on MySQL or MariaDB.

Values are converted by plain processors, none where the driver's value is already right: a read
of thousands of rows spends its time here.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    DateTime,
    Dialect,
    Double,
    Integer,
    LargeBinary,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

Real = Double
"""A float of eight bytes."""

Serial = BigInteger().with_variant(Integer(), "sqlite")
"""A number that the database gives, as primary key; SQLite counts in INTEGER only."""

LongText = Text().with_variant(mysql.MEDIUMTEXT(), "mysql")
"""Text up to 16 MiB: MySQL's TEXT would stop at 64 KiB, SQLite's does not."""

LongBytes = LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql")
"""Bytes up to 16 MiB."""

TABLE_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mysql_row_format": "DYNAMIC",
}
"""For every table: the database's own default may be latin1, or compare emoji as equal."""


class Key(TypeDecorator[str]):
    """A string compared byte by byte, at most size bytes of UTF-8, for ids, hashes and words.

    MySQL's binary collations ignore spaces at the end and its others ignore case, so there it is
    VARBINARY. Refuses longer ones on both with ValueError.
    """

    impl = Text
    cache_ok = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose VARBINARY on MySQL, text collated BINARY on SQLite."""
        if dialect.name == "mysql":
            return dialect.type_descriptor(mysql.VARBINARY(self.size))
        return dialect.type_descriptor(Text(collation="BINARY"))

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Check the size and encode where bytes are stored."""
        as_bytes = dialect.name == "mysql"
        size = self.size

        def bind(value: str | None) -> str | bytes | None:
            if value is None:
                return None
            encoded = value.encode()
            if len(encoded) > size:
                message = f"a key of {len(encoded)} bytes where {size} are allowed"
                raise ValueError(message)
            return encoded if as_bytes else value

        return bind

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Decode where bytes are stored."""
        del coltype
        return _decode if dialect.name == "mysql" else None


def _decode(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


class UtcTime(TypeDecorator[datetime]):
    """A moment, in UTC to the microsecond. Refuses naive values with ValueError.

    DATETIME(6) on MySQL; on SQLite text of one width with its offset, which sorts by time.
    """

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the type that keeps microseconds."""
        if dialect.name == "mysql":
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(Text())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Bring the moment to UTC."""
        as_text = dialect.name != "mysql"

        def bind(value: datetime | None) -> str | datetime | None:
            if value is None:
                return None
            if value.tzinfo is None:
                message = "a time without its zone"
                raise ValueError(message)
            utc = value.astimezone(UTC)
            return utc.isoformat(" ", "microseconds") if as_text else utc.replace(tzinfo=None)

        return bind

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Give the moment its zone back."""
        del coltype
        return _aware if dialect.name == "mysql" else _parse


def _aware(value: datetime | None) -> datetime | None:
    return None if value is None else value.replace(tzinfo=UTC)


def _parse(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


class Json(TypeDecorator[Any]):
    """A JSON value, kept as text byte for byte: the servers' own types reorder or rewrite it."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose text up to 16 MiB."""
        return dialect.type_descriptor(LongText.dialect_impl(dialect))

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Write JSON; None stays NULL. Raises ValueError for NaN and infinity."""
        del dialect
        return _dumps

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Read JSON."""
        del dialect, coltype
        return _loads


def _dumps(value: object) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _loads(value: str | None) -> Any:
    if value is None:
        return None
    # Most stored values are empty, and the parser is slow to start.
    if value == "{}":
        return {}
    return [] if value == "[]" else json.loads(value)
