"""What a conversation is called until somebody names it."""

import grapheme
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_service.domain.title import title_of


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("Plan my week", "Plan my week"),
        ("\n\n  Plan   my\tweek \nplease", "Plan my week"),
        ("下周三帮我安排牙医", "下周三帮我安排牙医"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_it_is_the_first_line_that_says_something(message: str, title: str) -> None:
    assert title_of(message, characters=24) == title


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("abcdef", "abcdef"),
        ("abcdefg", "abcde…"),
        ("abcd  fgh", "abcd…"),
        ("👨‍👩‍👧" * 7, "👨‍👩‍👧" * 5 + "…"),
    ],
)
def test_a_long_line_is_cut_between_characters(message: str, title: str) -> None:
    assert title_of(message, characters=6) == title


@given(st.text(), st.integers(1, 30))
def test_it_is_one_line_of_at_most_so_many_characters(message: str, characters: int) -> None:
    title = title_of(message, characters=characters)
    assert len(title.splitlines()) <= 1
    assert grapheme.length(title) <= characters
