import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from memory_service.codec.checks import MAX_METADATA_LEVELS, MAX_RETENTION, Checks
from memory_service.domain.errors import InvalidRequest


def refused(check: Callable[[Checks], object]) -> list[str]:
    checks = Checks()
    check(checks)
    try:
        checks.passed()
    except InvalidRequest as error:
        return [violation.field for violation in error.violations]
    return []


@pytest.mark.parametrize(
    "value",
    ["", "x" * 129, "é" * 65, "a\nb", "a\tb", "a\0", "a\x7f", "a\x85b", "\x1b"],
)
def test_an_id_that_is_empty_too_long_or_has_control_characters_is_refused(value: str) -> None:
    assert refused(lambda check: check.identifier("user_id", value)) == ["user_id"]


@pytest.mark.parametrize(
    "value",
    [
        'x" or user_id != "y',
        "a\\b",
        "a'b",
        "team_1",
        "%",
        "Ann ",
        "👩‍🚀",
        "x" * 128,
        "a\u2028b",
        "*",
    ],
)
def test_odd_ids_are_ordinary(value: str) -> None:
    assert Checks().identifier("user_id", value) == value
    assert refused(lambda check: check.identifier("user_id", value)) == []


@given(st.text(max_size=200))
def test_content_is_kept_byte_for_byte_but_for_nul(text: str) -> None:
    checks = Checks()
    assert checks.content("content", text) == text.replace("\0", "")


@pytest.mark.parametrize("value", ["", " \n", "\0", "\u200b\ufeff", "é" * 8193])
def test_content_that_says_nothing_or_is_too_long_is_refused(value: str) -> None:
    assert refused(lambda check: check.content("content", value)) == ["content"]


def test_nul_does_not_count_for_the_length() -> None:
    assert refused(lambda check: check.content("content", "x" * 16384 + "\0")) == []


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, -math.inf])
def test_a_number_outside_0_to_1_is_refused(value: float) -> None:
    assert refused(lambda check: check.fraction("confidence", value)) == ["confidence"]


def test_zero_is_a_value() -> None:
    assert math.copysign(1, Checks().fraction("confidence", -0.0)) == 1
    assert refused(lambda check: check.fraction("confidence", 0.0)) == []


def test_words_take_only_named_values_and_no_more_than_there_are() -> None:
    table = {1: "a", 2: "b"}
    assert Checks().words("types", [2, 1], table) == {"a", "b"}
    assert refused(lambda check: check.words("types", [1, 0], table)) == ["types[1]"]
    assert refused(lambda check: check.words("types", [1, 1, 1], table)) == ["types"]


def test_names_are_each_checked_and_counted() -> None:
    assert Checks().names("ids", ["a", "b"], 2) == ("a", "b")
    assert refused(lambda check: check.names("ids", ["a", ""], 2)) == ["ids[1]"]
    assert refused(lambda check: check.names("ids", ["a", "b", "c"], 2)) == ["ids"]


def test_an_owner_named_twice_must_be_the_same() -> None:
    assert refused(lambda check: check.owner("memory.user_id", "", "u1")) == []
    assert refused(lambda check: check.owner("memory.user_id", "u2", "u1")) == ["memory.user_id"]


def test_metadata_keeps_json_and_drops_nul() -> None:
    message = Struct()
    message.update({"a\0": ["x\0", {"b\0": None}], "n": 3, "r": 0.5, "t": True})
    data = Checks().metadata("metadata", message)
    assert data == {"a": ["x", {"b": None}], "n": 3, "r": 0.5, "t": True}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_metadata_with_numbers_that_json_does_not_know_is_refused(value: float) -> None:
    message = Struct()
    message.fields["n"].number_value = value
    assert refused(lambda check: check.metadata("metadata", message)) == ["metadata"]


def test_metadata_is_bounded_in_bytes() -> None:
    message = Struct()
    message.update({"a": "é" * 2043})
    assert refused(lambda check: check.metadata("metadata", message)) == []
    message.update({"a": "é" * 2045})
    assert refused(lambda check: check.metadata("metadata", message)) == ["metadata"]


def test_times_are_utc_in_microseconds() -> None:
    assert Checks().time("t", Timestamp(seconds=1, nanos=1999)) == datetime(
        1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC
    )
    last = Timestamp(seconds=253402300799, nanos=999_999_999)
    assert Checks().time("t", last) == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "message",
    [
        Timestamp(seconds=253402300800),
        Timestamp(seconds=-62135596801),
        Timestamp(nanos=-1),
        Timestamp(nanos=1_000_000_000),
    ],
)
def test_a_time_that_is_none_is_refused(message: Timestamp) -> None:
    assert refused(lambda check: check.time("t", message)) == ["t"]


def test_retention_is_one_second_to_a_hundred_years() -> None:
    assert Checks().retention("r", Duration(seconds=90)) == timedelta(seconds=90)
    longest = Duration(seconds=int(MAX_RETENTION.total_seconds()))
    assert Checks().retention("r", longest) == MAX_RETENTION


@pytest.mark.parametrize(
    "message",
    [
        Duration(),
        Duration(seconds=-5),
        Duration(seconds=2**40),
        Duration(seconds=1, nanos=-1),
    ],
)
def test_a_retention_that_is_none_is_refused(message: Duration) -> None:
    assert refused(lambda check: check.retention("r", message)) == ["r"]


def test_all_fields_are_refused_together() -> None:
    checks = Checks()
    checks.not_negative("a", -1)
    checks.count("b", 4, 1, 3)
    with pytest.raises(InvalidRequest, match=r"a: .*; b: ") as caught:
        checks.passed()
    assert [violation.field for violation in caught.value.violations] == ["a", "b"]


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"k": x}])
def test_metadata_is_bounded_in_depth(wrap: Callable[[Any], Any]) -> None:
    value: Any = 1
    for _ in range(MAX_METADATA_LEVELS - 1):
        value = wrap(value)
    message = Struct()
    message.update({"a": value})
    assert refused(lambda check: check.metadata("metadata", message)) == []
    message.update({"a": wrap(value)})
    assert refused(lambda check: check.metadata("metadata", message)) == ["metadata"]
