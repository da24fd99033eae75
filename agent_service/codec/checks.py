"""The rules of request fields, each once. Limits count bytes of UTF-8."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import TypeVar
from zoneinfo import available_timezones

from agent_service.domain.errors import InvalidField, InvalidRequest
from rpc.fields import id_problems, items_of_page

Word = TypeVar("Word")
Place = TypeVar("Place")

MAX_MESSAGE_BYTES = 32 * 1024
MAX_BUDGET = 200

_OFFSET = re.compile(r"[+-](\d\d):(\d\d)", re.ASCII)
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8})*", re.ASCII)
_MAX_OFFSET = timedelta(hours=14)


class Checks:
    """The fields of one request, refused together.

    Each method takes the proto path of a field and what was sent, and gives the domain's value; a
    value that breaks the rule is noted and something harmless given instead, until passed raises.
    """

    def __init__(self) -> None:
        self._violations: list[InvalidField] = []

    def refuse(self, field: str, expected: str) -> None:
        """Note that a field is not acceptable."""
        self._violations.append(InvalidField(field, expected))

    def passed(self) -> None:
        """Raise InvalidRequest if anything was refused."""
        if self._violations:
            raise InvalidRequest(self._violations)

    def identifier(self, field: str, value: str) -> str:
        """Give an id of 1..128 bytes without control characters; any other text is one."""
        if not value:
            self.refuse(field, "is required")
        return self.name(field, value)

    def name(self, field: str, value: str) -> str:
        """Give an id or name of 0..128 bytes without control characters."""
        for problem in id_problems(value):
            self.refuse(field, problem)
        return value

    def message(self, field: str, value: str) -> str:
        """Give a message without NUL, at most 32 KiB and not blank after that."""
        text = value.replace("\0", "")
        if len(text.encode()) > MAX_MESSAGE_BYTES:
            self.refuse(field, f"at most {MAX_MESSAGE_BYTES} bytes")
        elif not text.strip():
            self.refuse(field, "must not be blank")
        return text

    def word(self, field: str, number: int, words: Mapping[int, Word]) -> Word:
        """Give what an enum's number stands for; protobuf lets any number through."""
        if number not in words:
            self.refuse(field, "not one of the values")
            return next(iter(words.values()))
        return words[number]

    def words(
        self, field: str, numbers: Sequence[int], words: Mapping[int, Word]
    ) -> tuple[Word, ...]:
        """Give an enum's values without repetitions, from a list not longer than they are many."""
        if len(numbers) > len(words):
            self.refuse(field, f"at most {len(words)}")
        given = enumerate(numbers[: len(words)])
        return tuple(dict.fromkeys(self.word(f"{field}[{i}]", n, words) for i, n in given))

    def not_negative(self, field: str, value: int) -> int:
        """Give a number that is not below 0."""
        if value < 0:
            self.refuse(field, "must not be below 0")
            return 0
        return value

    def budget(self, field: str, value: int) -> int:
        """Give a number of memories, 0..200; 0 is a value."""
        if not 0 <= value <= MAX_BUDGET:
            self.refuse(field, f"must be 0..{MAX_BUDGET}")
        return value

    def page_size(self, value: int) -> int:
        """Give 50 for 0, and at most 200."""
        return items_of_page(self.not_negative("page_size", value))

    def place(self, decode: Callable[..., Place | None], token: str, *about: str) -> Place | None:
        """Give the place that a page token stands for, decoded by one of page_tokens."""
        try:
            return decode(token, *about)
        except InvalidField as bad:
            self.refuse(bad.field, bad.description)
            return None

    def timezone(self, field: str, value: str) -> str:
        """Give an IANA name, an offset such as +08:00 up to 14 hours, or empty."""
        if value and value not in _zones() and not _is_offset(value):
            self.refuse(field, "an IANA name or an offset such as +08:00")
        return value

    def locale(self, field: str, value: str) -> str:
        """Give a BCP 47 tag in its outline (zh, zh-Hans-CN; zh_CN is taken too), or empty."""
        if value and not _LANGUAGE_TAG.fullmatch(value):
            self.refuse(field, "a BCP 47 language tag such as zh-CN")
            return value
        return self.name(field, value)


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
