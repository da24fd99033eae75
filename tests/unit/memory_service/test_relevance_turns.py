import pytest

from memory_service.domain.model import Role
from memory_service.domain.turns import Turns, asks, is_named, speaker_of
from tests.builders.memories import memory
from tests.builders.scored_rows import turn


@pytest.mark.parametrize(
    "text",
    [
        "Did you?",
        "真的吗？",
        'She said "really?"',
        "她问“去哪儿？”",
        "Have you seen it (the new one?)",
        "Look at this? [shares an image: a red cup]",
        "Did you?  \n",
    ],
)
def test_a_turn_that_ends_with_a_question_mark_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No.",
        "Did you? Fine.",
        "Fine. [shares an image: a cup?]",
        "Did you? [one] [two]",
        "Why? [note] indeed",
        "[why?]",
    ],
)
def test_other_turns_do_not_ask(text: str) -> None:
    assert not asks(text)


@pytest.mark.parametrize(
    ("speaker", "content", "expected"),
    [
        ("Anna", "Ben: hello", "anna"),
        ("", "Ben: hello", "ben"),
        ("", "(8 May 2023) Ben: hello", "ben"),
        ("", "（5月8日）小雨：你好", "小雨"),
        ("", "no colon here", ""),
        ("", "x" * 32 + ": too long for a name", ""),
    ],
)
def test_the_speaker_is_stored_or_stands_before_the_colon(
    speaker: str, content: str, expected: str
) -> None:
    assert speaker_of(memory("m", content, speaker=speaker)) == expected


def test_words_before_a_colon_are_no_name_where_it_is_known_who_spoke() -> None:
    assert speaker_of(memory("m", "Remind me: buy milk", role=Role.USER)) == ""
    assert speaker_of(memory("m", "Remind me: buy milk", role=Role.USER, speaker="Anna")) == "anna"


@pytest.mark.parametrize(
    ("speaker", "text", "expected"),
    [
        ("ann", "where is ann?", True),
        ("ann", "ann's flat", True),
        ("ann", "anna's flat", False),
        ("ann", "joann", False),
        ("小雨", "谁送了小雨礼物", True),
        ("小雨", "谁送了礼物", False),
        ("a.b", "is aXb here", False),
    ],
)
def test_a_name_is_a_whole_word_and_in_cjk_any_part(
    speaker: str, text: str, *, expected: bool
) -> None:
    assert is_named(speaker, text) is expected


def _turns(*memories_in_slots: object) -> Turns:
    turns = Turns()
    turns.reserve(len(memories_in_slots) + 1)
    for slot, one in enumerate(memories_in_slots, start=1):
        turns.add(slot, one)  # type: ignore[arg-type]
    return turns


def _links(turns: Turns, slots: int) -> list[tuple[int, int]]:
    return [(int(turns.previous[i]), int(turns.following[i])) for i in range(1, slots + 1)]


def test_turns_are_linked_by_time_whatever_the_order_in_which_they_came() -> None:
    turns = _turns(turn("a", "x", at=120), turn("b", "x", at=0), turn("c", "x", at=60))
    assert _links(turns, 3) == [(3, 0), (0, 3), (2, 1)]


def test_turns_of_one_time_are_linked_by_id() -> None:
    assert _links(_turns(turn("b", "x"), turn("a", "x")), 2) == [(2, 0), (0, 1)]


def test_a_pause_of_an_hour_is_bridged_and_a_longer_one_is_not() -> None:
    turns = _turns(turn("a", "x", at=0), turn("b", "x", at=3600), turn("c", "x", at=7200.5))
    assert _links(turns, 3) == [(0, 2), (1, 0), (0, 0)]


def test_only_verbatim_turns_of_one_conversation_with_a_time_are_linked() -> None:
    turns = _turns(
        turn("a", "x", conversation_id="c1"),
        turn("b", "x", conversation_id="c2"),
        turn("c", "x", conversation_id=""),
        memory("d", "x", conversation_id="c1"),
        memory("e", "x", conversation_id="c1", is_verbatim=True),
    )
    assert _links(turns, 5) == [(0, 0)] * 5


def test_neighbours_of_a_removed_turn_become_each_others() -> None:
    gone = turn("b", "x", at=60)
    turns = _turns(turn("a", "x"), gone, turn("c", "x", at=120))
    turns.remove(2, gone)
    assert _links(turns, 3) == [(0, 3), (0, 0), (1, 0)]


def test_neighbours_of_a_removed_turn_that_are_far_apart_part() -> None:
    gone = turn("b", "x", at=3000)
    turns = _turns(turn("a", "x"), gone, turn("c", "x", at=6000))
    turns.remove(2, gone)
    assert _links(turns, 3) == [(0, 0), (0, 0), (0, 0)]


def test_the_last_turn_of_a_conversation_leaves_nothing_behind() -> None:
    gone = turn("a", "Anna: x?")
    turns = _turns(gone)
    turns.remove(1, gone)
    turns.add(1, turn("b", "Ben: y"))
    assert _links(turns, 1) == [(0, 0)]
    assert not turns.asks[1]
    assert turns.named("Anna or Ben?", 2) is None


def test_exactly_one_of_several_speakers_must_be_named() -> None:
    turns = _turns(turn("a", "Anna: x"), turn("b", "Ben: y", at=9), turn("c", "Anna: z", at=18))
    named = turns.named("what did ANNA say?", 4)
    assert named is not None
    assert named.tolist() == [False, True, False, True]
    assert turns.named("Anna and Ben?", 4) is None
    assert turns.named("who?", 4) is None
