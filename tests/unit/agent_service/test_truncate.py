"""P10: how a text is cut."""

import re

import grapheme
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_service.adapters.tokens_toktok import default_counter
from agent_service.domain.components import Truncate
from agent_service.domain.tokens import ByteClassEstimate, FunctionCounter, TokenCounter
from agent_service.domain.truncate import MARKER, MIN_USEFUL, cut
from tests.builders.components import CHARACTERS, ROUGH

COUNTERS: list[TokenCounter] = [CHARACTERS, ROUGH, ByteClassEstimate(), default_counter()]
ALPHABET = st.sampled_from("ab .。\n！é用户👨👩🇩🇪\u200d\u0301\r가ᄀ")
TEXTS = st.text(ALPHABET, min_size=20, max_size=200)


def run(text: str, how: Truncate, room: int, counter: TokenCounter = CHARACTERS) -> str:
    return cut(text, how, before="# A\n", behind="", room=room, counter=counter)


def kept(body: str, how: Truncate) -> tuple[str, str]:
    """Give what a cut body keeps of the beginning and of the end of its text."""
    if how is Truncate.TAIL:
        return "", body.removeprefix(f"{MARKER.strip()}\n")
    if how is Truncate.HEAD:
        return body.removesuffix(MARKER), ""
    head, tail = body.split(f"{MARKER}\n")
    return head, tail


def boundaries(text: str) -> set[int]:
    places = {0}
    for cluster in grapheme.graphemes(text):
        places.add(max(places) + len(cluster))
    return places


@given(
    text=TEXTS,
    how=st.sampled_from([Truncate.HEAD, Truncate.TAIL, Truncate.MIDDLE]),
    room=st.integers(0, 120),
    counter=st.sampled_from(COUNTERS),
)
def test_p10_a_cut_text_fits_and_keeps_exact_ends_at_grapheme_boundaries(
    text: str, how: Truncate, room: int, counter: TokenCounter
) -> None:
    body = run(text, how, room, counter)
    if not body:
        return
    assert counter.count_many([f"# A\n{body}"])[0] <= room
    head, tail = kept(body, how)
    assert (head + tail).strip()
    assert len(head) + len(tail) < len(text)
    assert text.startswith(head)
    assert text.endswith(tail)
    places = boundaries(text)
    assert len(head) in places
    assert len(text) - len(tail) in places


@given(text=st.text(st.sampled_from("ab. 。\n"), min_size=60, max_size=200))
def test_p10_a_nicer_place_keeps_three_fifths_of_the_room(text: str) -> None:
    room = 50
    left = room - len("# A\n") - len(MARKER)
    body = run(text, Truncate.HEAD, room)
    if body and not text[:left].isspace():
        assert len(body.removesuffix(MARKER)) >= int(left * 0.6)


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("One line. Two.\n\nThree, and four five six seven", "One line. Two."),
        ("One line. Two words here, and more of them", "One line. Two words"),
        ("Somewhat longer line\nthen another one of it", "Somewhat longer line"),
        ("A question? Yes! And then something else", "A question? Yes!"),
        ("用户说：“今天很好。”明天也会很好吧，后天不一定也好", "用户说：“今天很好。”"),
        ("abcdefghijklmnopqrstuvwxyzabcdefghijkl", "abcdefghijklmnopqrstuvwx"),
    ],
)
def test_p10_a_text_ends_with_a_paragraph_else_a_sentence_else_a_word(text: str, head: str) -> None:
    room = len("# A\n") + len(MARKER) + (24 if text.isascii() else 14)
    assert run(text, Truncate.HEAD, room) == f"{head}{MARKER}"


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("some words before it\n\nA paragraph at the end", "A paragraph at the end"),
        ("some words. And a sentence stands.", "And a sentence stands."),
        ("thisisaverylongword and its end is here", "and its end is here"),
        ("前面的话很长很长。后面的话也不是很短。", "后面的话也不是很短。"),
        ("x" * 60, "x" * 24),
    ],
)
def test_p10_a_kept_end_begins_with_a_paragraph_else_a_sentence_else_a_word(
    text: str, tail: str
) -> None:
    room = len("# A\n") + len(MARKER) + (24 if text.isascii() else 14)
    assert run(text, Truncate.TAIL, room) == f"{MARKER.strip()}\n{tail}"


def test_p10_families_and_flags_are_not_parted_at_either_end() -> None:
    family, flag = "👨‍👩‍👧‍👦", "🇩🇪"
    body = run(family * 5 + flag * 20, Truncate.MIDDLE, 18 + 30)
    head, tail = kept(body, Truncate.MIDDLE)
    assert head == family * 2
    assert set(re.findall("..", tail)) == {flag}


def test_a_text_of_which_too_little_would_be_left_is_not_cut() -> None:
    least = len("# A\n") + len(MARKER) + MIN_USEFUL
    assert run("x" * 100, Truncate.HEAD, least) == "x" * MIN_USEFUL + MARKER
    assert run("x" * 100, Truncate.HEAD, least - 1) == ""


@pytest.mark.parametrize("how", [Truncate.HEAD, Truncate.TAIL, Truncate.MIDDLE])
def test_blanks_alone_are_not_worth_sending(how: Truncate) -> None:
    assert run(" " * 40 + "x" * 40 + " " * 40, how, 40) == ""


def test_a_counter_that_never_comes_down_ends_the_trying() -> None:
    def stubborn(text: str) -> int:
        return 1000 if MARKER in text and len(text) > len(MARKER) + 4 else min(len(text), 18)

    counter = FunctionCounter(stubborn)
    assert run("x" * 100, Truncate.HEAD, 900, counter) == ""


def test_a_marker_that_joins_badly_is_paid_for_by_the_text() -> None:
    def joined(text: str) -> int:
        return len(text) + 5 * (f"x{MARKER}" in text)

    body = run("x" * 100, Truncate.HEAD, 50, FunctionCounter(joined))
    assert body == "x" * (50 - 4 - len(MARKER) - 5) + MARKER


def test_the_trying_ends_with_a_counter_that_says_more_each_time() -> None:
    def rising(text: str) -> int:
        if text == f"# A\n{MARKER}":
            return 0
        return 401 if MARKER in text else len(text)

    assert run("x" * 500, Truncate.HEAD, 400, FunctionCounter(rising)) == ""
