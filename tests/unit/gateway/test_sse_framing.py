"""One event is one event for every reader, whatever text it carries."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.sse import HEARTBEAT, Place, event_id, frame, one_line, parse_event_id
from tests.services.sse_reader import read_events

TEXT = st.text(st.characters(codec="utf-8"))
ODD = [
    "\n",
    "\r\n",
    "\r",
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x1c",
    "data: x\n\nevent: done",
    "渐🌍",
]


@given(TEXT | st.sampled_from(ODD), TEXT | st.sampled_from(ODD))
def test_any_text_survives_the_way_through_a_reader_of_events(text: str, other: str) -> None:
    data = {"delta": {"text": text}, other: [other]}
    stream = frame("delta", data, "c/t/1") + HEARTBEAT + frame("delta", data, "c/t/2")
    first, second = read_events(stream)
    assert first.json == second.json == data
    assert (first.event, first.id, second.id) == ("delta", "c/t/1", "c/t/2")


@given(TEXT | st.sampled_from(ODD))
def test_data_is_one_line_for_readers_that_split_at_more_than_the_standard_says(text: str) -> None:
    data = {"text": text}
    assert len(one_line(data).splitlines()) == 1
    assert json.loads(one_line(data)) == data


@given(
    TEXT.filter(bool) | st.sampled_from(["a/b", "100%", "x\ny", "安/🌍"]),
    TEXT.filter(bool),
    st.integers(0, 2**31 - 1),
)
def test_an_event_id_names_its_place_whatever_the_ids_are(
    conversation_id: str, turn_id: str, seq: int
) -> None:
    name = event_id(Place(conversation_id, turn_id, seq))
    assert name.isascii()
    assert name.isprintable()
    assert parse_event_id(name) == Place(conversation_id, turn_id, seq)


def test_ordinary_ids_look_as_they_are_in_an_event_id() -> None:
    assert event_id(Place("0193-ab", "t_1.x~", 7)) == "0193-ab/t_1.x~/7"


def test_what_is_no_event_id_is_none() -> None:
    odd = ["", "c/t", "c/t/x", "c/t/-1", "c/t/²", "/t/1", "c//1", "c/t/1/2", f"c/t/{2**31}"]
    assert [parse_event_id(text) for text in odd] == [None] * len(odd)
    assert parse_event_id("c/t/" + "9" * 10_000) is None


def test_a_frame_without_id_keeps_the_last_one_of_the_client() -> None:
    stream = frame("delta", {"n": 1}, "c/t/4") + frame("error", {"n": 2})
    assert read_events(stream)[1].id == "c/t/4"


def test_a_heartbeat_is_no_event() -> None:
    assert read_events(HEARTBEAT * 3) == []
