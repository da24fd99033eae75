"""What fits into IngestTurn, and how waits grow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_service.codec.checks import MAX_MESSAGE_BYTES
from agent_service.domain.learning import MAX_CONTENT_BYTES, beginning, fitted, wait_after
from tests.builders.learning import to_learn

FAMILY = "👨‍👩‍👧"


@given(st.text(), st.integers(1, 40))
def test_a_beginning_is_a_prefix_in_whole_characters_that_fits(text: str, most: int) -> None:
    head = beginning(text, most)
    assert text.startswith(head)
    assert len(head.encode()) <= most
    assert head == text or len(text.encode()) > most


@pytest.mark.parametrize(
    ("text", "most", "head"),
    [
        ("abc", 3, "abc"),
        ("中文字", 8, "中文"),
        (f"ab{FAMILY}cd", 12, "ab"),
        (f"ab{FAMILY}cd", 20, f"ab{FAMILY}"),
        ("e\N{COMBINING ACUTE ACCENT}" * 2, 5, "e\N{COMBINING ACUTE ACCENT}"),
    ],
)
def test_a_beginning_ends_between_what_people_take_for_characters(
    text: str, most: int, head: str
) -> None:
    assert beginning(text, most) == head


def test_of_a_character_without_end_the_beginning_is_taken() -> None:
    text = "e" + "\N{COMBINING ACUTE ACCENT}" * 20
    assert beginning(text, 10) == text[:5]


def test_a_long_answer_is_cut_and_the_user_never_is() -> None:
    turn = to_learn(message="字" * 20_000, answer="字" * 20_000)
    said, answered = fitted(turn).messages
    assert said == turn.messages[0]
    assert answered.content == "字" * (MAX_CONTENT_BYTES // 3)


def test_a_turn_that_fits_stays_as_it_is() -> None:
    turn = to_learn()
    assert list(fitted(turn).messages) == list(turn.messages)


def test_every_message_that_a_chat_takes_may_be_learnt_from_whole() -> None:
    assert MAX_MESSAGE_BYTES <= MAX_CONTENT_BYTES


def test_waits_double_up_to_the_longest() -> None:
    assert [wait_after(n, 0.0) for n in (1, 2, 3, 6, 7, 99)] == [1, 2, 4, 32, 60, 60]


@given(st.integers(1, 200), st.floats(0, 1, exclude_max=True))
def test_jitter_takes_up_to_half_of_a_wait_away(failures: int, jitter: float) -> None:
    whole = wait_after(failures, 0.0)
    assert whole / 2 <= wait_after(failures, jitter) <= whole
