"""Dedup: who survives, what the survivor takes over, and that nothing is counted twice."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.dedup import dedup
from memory_service.domain.model import MemoryType
from memory_service.domain.recall import Candidate, DropReason, Leg
from memory_service.domain.text import rendered_text
from tests.builders.candidates import candidate, candidates

PINNED, FOUND = frozenset({Leg.PINNED}), frozenset({Leg.SEMANTIC, Leg.KEYWORD})


def ids(survivors: list[Candidate]) -> list[str]:
    return [one.memory.memory_id for one in survivors]


def test_of_one_id_the_later_survives_at_the_place_of_the_first() -> None:
    survivors, dropped = dedup(
        [candidate("m1", "old", legs=PINNED), candidate("m2"), candidate("m1", "new")]
    )
    assert [one.memory.content for one in survivors] == ["new", "Content of m2."]
    assert [(one.memory_id, one.reason) for one in dropped] == [("m1", DropReason.DUPLICATE_ID)]


def test_of_one_hash_the_more_important_survives() -> None:
    for first, second in ((0.9, 0.1), (0.1, 0.9)):
        survivors, dropped = dedup(
            [
                candidate("m1", "Likes tea", importance=first, confidence=0.1),
                candidate("m2", "likes  tea", importance=second, confidence=0.9),
            ]
        )
        assert ids(survivors) == ["m1" if first > second else "m2"]
        assert [one.reason for one in dropped] == [DropReason.DUPLICATE_HASH]


def test_then_the_more_confident_then_the_later() -> None:
    surer = [candidate("m1", "x", confidence=0.9), candidate("m2", "x", confidence=0.1)]
    assert ids(dedup(surer)[0]) == ["m1"]
    assert ids(dedup(surer[::-1])[0]) == ["m1"]
    assert ids(dedup([candidate("m2", "x"), candidate("m1", "x")])[0]) == ["m1"]


def test_an_empty_hash_is_no_hash() -> None:
    one, other = candidate("m1", "a"), candidate("m2", "b")
    bare = [replace(c, memory=replace(c.memory, content_hash="")) for c in (one, other)]
    assert ids(dedup(bare)[0]) == ["m1", "m2"]


def test_rows_that_read_the_same_are_one_though_their_hashes_differ() -> None:
    fact, unknown = candidate("m1", "a"), candidate("m2", "A", memory_type=MemoryType.UNKNOWN)
    survivors, dropped = dedup([fact, unknown])
    assert ids(survivors) == ["m2"]
    assert [one.reason for one in dropped] == [DropReason.DUPLICATE_TEXT]


def test_the_same_words_under_another_label_are_another_memory() -> None:
    rows = [candidate("m1", "a"), candidate("m2", "a", memory_type=MemoryType.CONSTRAINT)]
    assert ids(dedup(rows)[0]) == ["m1", "m2"]


def test_the_survivor_takes_legs_and_the_highest_relevance_with_its_parts() -> None:
    important = candidate("m1", "a", legs=PINNED, importance=0.9, held_back=True)
    relevant = candidate("m2", "a", legs=FOUND, relevance=0.7, importance=0.1)
    for order in ([important, relevant], [relevant, important]):
        (survivor,), _ = dedup(order)
        assert survivor.memory.memory_id == "m1"
        assert survivor.legs == PINNED | FOUND
        assert survivor.pinned
        assert survivor.relevance == 0.7
        assert survivor.relevance_parts == {"own": 0.7}
        assert not survivor.held_back


def test_a_survivor_is_held_back_if_all_it_stands_for_are() -> None:
    both = [candidate("m1", "a", held_back=True), candidate("m2", "a", held_back=True)]
    assert dedup(both)[0][0].held_back


@given(st.lists(candidates()))
def test_no_two_survivors_share_an_id_a_hash_or_a_text(drawn: list[Candidate]) -> None:
    survivors, _ = dedup(drawn)
    for key in (
        lambda one: one.memory.memory_id,
        lambda one: one.memory.content_hash,
        lambda one: rendered_text(one.memory),
    ):
        assert len({key(one) for one in survivors}) == len(survivors)


@given(st.lists(candidates()))
def test_dedup_again_changes_nothing(drawn: list[Candidate]) -> None:
    survivors, _ = dedup(drawn)
    assert dedup(survivors) == (survivors, [])


@given(st.lists(candidates()))
def test_every_row_survives_or_is_counted_as_dropped(drawn: list[Candidate]) -> None:
    survivors, dropped = dedup(drawn)
    assert len(survivors) + len(dropped) == len(drawn)
    gone = [one.memory_id for one in dropped] + ids(survivors)
    assert sorted(gone) == sorted(ids(drawn))


@given(st.lists(candidates()))
def test_no_leg_and_no_relevance_is_lost(drawn: list[Candidate]) -> None:
    survivors, _ = dedup(drawn)
    legs = [leg for one in drawn for leg in one.legs]
    assert {leg for one in survivors for leg in one.legs} == set(legs)
    if drawn:
        assert max(one.relevance for one in survivors) == max(one.relevance for one in drawn)
