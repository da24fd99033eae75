"""The rules of request fields, each once. Limits count bytes of UTF-8."""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.domain.errors import InvalidField, InvalidRequest
from memory_service.domain.text import normalize, without_nul
from rpc.fields import id_problems

MAX_TITLE_BYTES = 256
MAX_CONTENT_BYTES = 16 * 1024
MAX_METADATA_BYTES = 4 * 1024
MAX_METADATA_LEVELS = 16
MAX_QUERY_BYTES = 64 * 1024
MAX_SENSITIVITY = 2
MAX_BUDGET = 200
MAX_RETENTION = timedelta(days=36_500)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND = -62_135_596_800  # 0001-01-01T00:00:00Z, as google.protobuf.Timestamp has it
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z
_NANOS = 1_000_000_000

Word = TypeVar("Word")


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

    def names(
        self, field: str, values: Iterable[str], most: int, *, least: int = 0
    ) -> tuple[str, ...]:
        """Give up to that many ids."""
        given = tuple(values)
        self.count(field, len(given), least, most)
        return tuple(self.identifier(f"{field}[{i}]", v) for i, v in enumerate(given[:most]))

    def owner(self, field: str, value: str, user_id: str) -> None:
        """Let an owner named once more be empty or the request's own."""
        if value not in {"", user_id}:
            self.refuse(field, "must be empty or the user_id of the request")

    def bytes(self, field: str, value: str, most: int) -> None:
        """Let text have at most that many bytes."""
        if len(value.encode()) > most:
            self.refuse(field, f"at most {most} bytes")

    def text(self, field: str, value: str, most: int) -> str:
        """Give text without NUL, of at most that many bytes then; else as it came."""
        text = without_nul(value)
        self.bytes(field, text, most)
        return text

    def content(self, field: str, value: str) -> str:
        """Give content that says something: not only white space and zero-width characters."""
        text = self.text(field, value, MAX_CONTENT_BYTES)
        if not normalize(text):
            self.refuse(field, "is required and must not be blank")
        return text

    def count(self, field: str, number: int, least: int, most: int) -> int:
        """Give a number, or a number of items, of that range."""
        if not least <= number <= most:
            self.refuse(field, f"must be {least}..{most}, is {number}")
            return least
        return number

    def not_negative(self, field: str, number: int) -> int:
        """Give a number that is not below 0."""
        if number < 0:
            self.refuse(field, "must not be below 0")
            return 0
        return number

    def fraction(self, field: str, number: float) -> float:
        """Give a number of 0..1; 0 is a value, and NaN is none."""
        if not (math.isfinite(number) and 0 <= number <= 1):
            self.refuse(field, "must be 0..1")
            return 0.0
        return number + 0.0  # -0.0 is 0.0

    def word(self, field: str, number: int, words: Mapping[int, Word]) -> Word:
        """Give what an enum's number stands for; unspecified and unknown ones are refused."""
        if number not in words:
            self.refuse(field, "must be one of the named values")
            return next(iter(words.values()))
        return words[number]

    def words(
        self, field: str, numbers: Iterable[int], words: Mapping[int, Word]
    ) -> frozenset[Word]:
        """Give a set of an enum's values, at most as many as there are."""
        given = tuple(numbers)
        self.count(field, len(given), 0, len(words))
        return frozenset(self.word(f"{field}[{i}]", n, words) for i, n in enumerate(given))

    def metadata(self, field: str, message: Struct) -> dict[str, object]:
        """Give a caller's own data, at most 4 KiB as compact JSON, without NUL in its texts.

        At most MAX_METADATA_LEVELS deep: parsers of protobuf give up at 100 messages inside each
        other, each level takes up to three, and an answer wraps a memory in more than a request.
        """
        try:
            data = {
                without_nul(key): _clean(value) for key, value in MessageToDict(message).items()
            }
        except (ValueError, SerializeToJsonError):
            self.refuse(field, "numbers must be finite")
            return {}
        if _levels(data) > MAX_METADATA_LEVELS:
            self.refuse(field, f"must be at most {MAX_METADATA_LEVELS} levels deep")
            return {}
        self.bytes(
            field, json.dumps(data, ensure_ascii=False, separators=(",", ":")), MAX_METADATA_BYTES
        )
        return data

    def time(self, field: str, message: Timestamp) -> datetime:
        """Give a moment in UTC, cut to microseconds."""
        if not (_FIRST_SECOND <= message.seconds <= _LAST_SECOND and 0 <= message.nanos < _NANOS):
            self.refuse(field, "must be a time of the years 1 to 9999")
            return _EPOCH
        return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)

    def retention(self, field: str, message: Duration) -> timedelta:
        """Give a span of 1 second to 36500 days, cut to microseconds."""
        most = int(MAX_RETENTION.total_seconds())
        if not (1 <= message.seconds <= most and 0 <= message.nanos < _NANOS):
            self.refuse(field, f"must be 1..{most} seconds")
            return MAX_RETENTION
        return timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _levels(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_levels, inner), default=0) if isinstance(value, dict | list) else 0


def _clean(value: object) -> object:
    match value:
        case str():
            return without_nul(value)
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {without_nul(key): _clean(item) for key, item in value.items()}
        case _:
            return value
