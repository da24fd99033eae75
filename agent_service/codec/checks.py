"""Checks that several requests share. Each raises InvalidField with the proto path of the field."""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import TypeVar
from zoneinfo import available_timezones

from agent_service.domain.errors import InvalidField
from rpc.fields import id_problems, items_of_page

Chosen = TypeVar("Chosen")

MAX_MESSAGE_BYTES = 32 * 1024
MAX_BUDGET = 200

_OFFSET = re.compile(r"[+-](\d\d):(\d\d)", re.ASCII)
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*", re.ASCII)
_MAX_OFFSET = timedelta(hours=14)


def required_id(field: str, value: str) -> str:
    """Give an id of 1..128 bytes without control characters; any other text is an ordinary id."""
    if not value:
        raise InvalidField(field, "is required")
    return optional_name(field, value)


def optional_name(field: str, value: str) -> str:
    """Give an id or name of 0..128 bytes without control characters."""
    for problem in id_problems(value):
        raise InvalidField(field, problem)
    return value


def message_text(field: str, value: str) -> str:
    """Give a message without NUL, at most 32 KiB and not blank after that."""
    text = value.replace("\0", "")
    if len(text.encode()) > MAX_MESSAGE_BYTES:
        raise InvalidField(field, f"at most {MAX_MESSAGE_BYTES} bytes")
    if not text.strip():
        raise InvalidField(field, "must not be blank")
    return text


def choice(field: str, number: int, known: Mapping[int, Chosen]) -> Chosen:
    """Give what an enum's number stands for; protobuf lets any number through."""
    if number not in known:
        raise InvalidField(field, "not one of the values")
    return known[number]


def at_least_zero(field: str, value: int) -> int:
    """Give a number that is not below 0."""
    if value < 0:
        raise InvalidField(field, "must not be below 0")
    return value


def budget(field: str, value: int) -> int:
    """Give a number of memories, 0..200; 0 is a value."""
    if not 0 <= value <= MAX_BUDGET:
        raise InvalidField(field, f"must be 0..{MAX_BUDGET}")
    return value


def page_size(value: int) -> int:
    """Give 50 for 0, and at most 200."""
    return items_of_page(at_least_zero("page_size", value))


def timezone(field: str, value: str) -> str:
    """Give an IANA name, an offset such as +08:00 up to 14 hours, or empty."""
    if value and value not in _zones() and not _is_offset(value):
        raise InvalidField(field, "an IANA name or an offset such as +08:00")
    return value


def locale(field: str, value: str) -> str:
    """Give a BCP 47 tag in its outline (zh, zh-Hans-CN; zh_CN is taken too), or empty."""
    if value and not _LANGUAGE_TAG.fullmatch(optional_name(field, value)):
        raise InvalidField(field, "a BCP 47 language tag such as zh-CN")
    return value


def _is_offset(value: str) -> bool:
    match = _OFFSET.fullmatch(value)
    if not match:
        return False
    hours, minutes = int(match[1]), int(match[2])
    return minutes < 60 and timedelta(hours=hours, minutes=minutes) <= _MAX_OFFSET  # noqa: PLR2004 — minutes of an hour


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    # Reads a folder of some hundred files: once, and not at import.
    return frozenset(available_timezones())
