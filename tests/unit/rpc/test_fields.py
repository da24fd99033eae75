"""Ids, pages and page tokens are the same in every service."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.fields import id_problems, items_of_page
from rpc.page_tokens import BadPageToken, page_place, page_token

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@pytest.mark.parametrize("value", ["", "a", "x" * 128, "é" * 64, "a'b\\%_\u2028🙂"])
def test_any_short_text_without_control_characters_is_an_id(value: str) -> None:
    assert id_problems(value) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("x" * 129, ["at most 128 bytes"]),
        ("é" * 65, ["at most 128 bytes"]),
        ("a\nb", ["no control characters"]),
        ("\x7f", ["no control characters"]),
        ("\x85" * 65, ["at most 128 bytes", "no control characters"]),
    ],
)
def test_what_is_no_id_says_why(value: str, problems: list[str]) -> None:
    assert id_problems(value) == problems


@pytest.mark.parametrize(("asked", "items"), [(0, 50), (1, 1), (200, 200), (5000, 200)])
def test_a_page_has_50_items_unless_said_and_200_at_most(asked: int, items: int) -> None:
    assert items_of_page(asked) == items


@given(WORDS, st.lists(st.text(), max_size=3))
def test_a_token_gives_back_its_place(place: str, about: list[str]) -> None:
    assert page_place(page_token(place, *about), *about) == place


def test_no_token_is_the_first_page() -> None:
    assert page_place("", "list", "ann") == ""


@pytest.mark.parametrize("about", [(), ("l", "bob"), ("l", "ann", ""), ("lann",), ("la", "nn")])
def test_a_token_is_of_one_list_only(about: tuple[str, ...]) -> None:
    with pytest.raises(BadPageToken):
        page_place(page_token("place", "l", "ann"), *about)


@given(WORDS)
def test_any_other_text_is_no_token(text: str) -> None:
    with pytest.raises(BadPageToken):
        page_place(text, "l", "ann")
