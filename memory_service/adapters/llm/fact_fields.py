"""One fact of a model's answer, field by field. What is absent says nothing; null is absent."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from memory_service.adapters.llm.extract_examples import EXAMPLE_EXPIRIES
from memory_service.adapters.llm.extract_prompt import TYPES
from memory_service.domain.ingest import Fact
from memory_service.domain.model import MemoryType

_LEVELS = (0, 1, 2)


class InvalidFact(Exception):
    """A field cannot be used, and guessing what it meant would make something up."""


def read_fact(item: Any, now: datetime) -> Fact:
    """Give a fact, said at now in the speaker's zone; a bare text is its content.

    Raises InvalidFact for a blank content, an unknown type, and a number out of its range. An
    expiry that is no time, has passed, or is copied from an example says nothing. Only a plain
    true is explicit.
    """
    fields = item if isinstance(item, Mapping) else {"content": item}
    return Fact(
        memory_type=_type(fields.get("memory_type")),
        content=_content(fields.get("content")),
        title=_title(fields.get("title")),
        confidence=_fraction(fields.get("confidence")),
        importance=_fraction(fields.get("importance")),
        sensitivity_level=_level(fields.get("sensitivity_level")),
        is_explicit=_is_true(fields.get("is_explicit")),
        expire_time=_expiry(fields.get("expire_time"), now),
    )


def _type(value: Any) -> MemoryType:
    if value is None:
        return MemoryType.FACT
    word = value.strip().lower() if isinstance(value, str) else value
    if word not in TYPES:
        raise InvalidFact
    return MemoryType(word)


def _content(value: Any) -> str:
    content = value.strip() if isinstance(value, str) else ""
    if not content:
        raise InvalidFact
    return content


def _title(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _fraction(value: Any) -> float | None:
    if value is None:
        return None
    number = _number(value)
    if not 0 <= number <= 1:
        raise InvalidFact
    return number


def _level(value: Any) -> int:
    if value is None:
        return 0
    number = _number(value)
    if number not in _LEVELS:
        raise InvalidFact
    return int(number)


def _number(value: Any) -> float:
    """Give a number, also one that stands as a text; not a number is none in any range."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidFact
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise InvalidFact from None


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def _expiry(value: Any, now: datetime) -> datetime | None:
    """Read ISO 8601. A time without a zone is in the speaker's; a day lasts until its end."""
    if not isinstance(value, str):
        return None
    try:
        time = _time(value.strip())
        aware = time if time.tzinfo else time.replace(tzinfo=now.tzinfo)
        expiry = aware.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return expiry if expiry > now and expiry not in EXAMPLE_EXPIRIES else None


def _time(text: str) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
    return datetime.combine(day, datetime.min.time()) + timedelta(days=1)
