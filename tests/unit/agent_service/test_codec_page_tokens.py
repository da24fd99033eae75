"""Page tokens: they say where to go on, and only in the list that they are of."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_service.codec.page_tokens import (
    decode_seq_place,
    decode_time_place,
    encode_seq_place,
    encode_time_place,
)
from agent_service.domain.errors import InvalidField
from rpc.page_tokens import page_token

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.integers(0, 2**57).map(lambda micros: EPOCH + timedelta(microseconds=micros))
IDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=32)
NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, UTC)


@given(TIMES, IDS)
def test_a_place_in_time_comes_back_to_the_microsecond(time: datetime, name: str) -> None:
    assert decode_time_place(encode_time_place((time, name), "l", "ann"), "l", "ann") == (
        time,
        name,
    )


@given(st.sampled_from(["after", "before"]), st.integers(0, 2**31 - 1))
def test_a_place_in_a_timeline_comes_back(side: str, seq: int) -> None:
    assert decode_seq_place(encode_seq_place(side, seq, "t"), "t") == (side, seq)


def test_no_place_is_no_token() -> None:
    assert encode_time_place(None, "l") == encode_seq_place("after", None, "t") == ""
    assert decode_time_place("", "l") is None
    assert decode_seq_place("", "t") is None


@pytest.mark.parametrize("about", [(), ("l", "bob"), ("l", "ann", ""), ("lann",), ("la", "nn")])
def test_a_token_is_bound_to_user_and_filter(about: tuple[str, ...]) -> None:
    token = encode_time_place((NOON, "c1"), "l", "ann")

    with pytest.raises(InvalidField, match="page_token"):
        decode_time_place(token, *about)


def test_a_token_of_one_kind_of_list_is_none_of_another() -> None:
    with pytest.raises(InvalidField):
        decode_seq_place(encode_time_place((NOON, "c1"), "l"), "l")
    with pytest.raises(InvalidField):
        decode_time_place(encode_seq_place("after", 3, "l"), "l")


@given(st.text())
def test_any_text_is_a_token_or_refused(text: str) -> None:
    for decode in (decode_time_place, decode_seq_place):
        try:
            decode(text, "l")
        except InvalidField as error:
            assert error.field == "page_token"  # noqa: PT017 — most texts are refused, empty is not


@pytest.mark.parametrize(
    "place",
    [
        [-1, "c1"],
        [10**30, "c1"],
        [1, "x" * 129],
        [1, "\ud83d"],
        [1, "a\0"],
        [1, 2],
        [1],
        [],
        {"a": 1},
    ],
)
def test_a_forged_place_never_reaches_the_store(place: object) -> None:
    with pytest.raises(InvalidField):
        decode_time_place(page_token(json.dumps(place), "l"), "l")
