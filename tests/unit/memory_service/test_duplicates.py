"""Which memories say the same, and which of them stays."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.duplicates import Duplicate, Said, covers, duplicates, said, united
from memory_service.domain.model import Memory, MemoryType
from tests.builders.memories import NOW, memory

HOUR = timedelta(hours=1)


def gone(*rows: Memory) -> list[Duplicate]:
    return duplicates([saying for row in rows if (saying := said(row)) is not None])


def tea(memory_id: str, content: str = "Likes tea.", **fields: object) -> Memory:
    return memory(memory_id, content, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "again", ["likes  TEA", "Likes tea!", "Likes\u200b tea 。", "Likes tea.", "Likes tea..."]
)
def test_words_are_the_same_but_for_spaces_case_and_closing_stops(again: str) -> None:
    assert gone(tea("m1"), tea("m2", again)) == [Duplicate("m1", "m2")]


@pytest.mark.parametrize(
    "other",
    [
        tea("m2", "Likes tea?"),
        tea("m2", "Likes green tea."),
        tea("m2", memory_type=MemoryType.PREFERENCE),
        tea("m2", sensitivity_level=1),
        tea("m2", is_verbatim=True),
        tea("m2", "喜欢茶。"),
    ],
)
def test_other_words_types_and_sensitivities_are_no_duplicates_nor_are_turns(
    other: Memory,
) -> None:
    assert gone(tea("m1"), other) == []


def test_an_unknown_type_counts_as_a_fact() -> None:
    assert gone(tea("m1", memory_type=MemoryType.UNKNOWN), tea("m2")) == [Duplicate("m1", "m2")]


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        (tea("m1", age=25 * HOUR, confidence=0.9), tea("m2", confidence=0.1), "m2"),
        (tea("m1", age=24 * HOUR, confidence=0.9), tea("m2", confidence=0.1), "m1"),
        (tea("m1", importance=0.9, age=HOUR), tea("m2", importance=0.1), "m1"),
        (tea("m1"), tea("m2", age=HOUR), "m1"),
        (tea("m1"), tea("m2"), "m2"),
    ],
)
def test_the_much_newer_stays_else_the_surer_the_more_important_the_newer_the_later_id(
    one: Memory, other: Memory, kept: str
) -> None:
    (duplicate,) = gone(one, other)
    assert duplicate.kept == kept
    assert gone(other, one) == [duplicate]


def test_what_is_for_all_covers_what_is_for_some_and_never_the_other_way_round() -> None:
    everybody = tea("m1", age=100 * HOUR)
    assistant = tea("m2", assistant_id="a")
    run = tea("m3", run_id="r")
    both = tea("m4", assistant_id="a", run_id="r")
    other = tea("m5", assistant_id="b")
    assert gone(everybody, assistant, run, both, other) == [
        Duplicate(one, "m1") for one in ("m2", "m3", "m4", "m5")
    ]
    assert gone(assistant, run, both, other) == [Duplicate("m4", "m3")]
    assert gone(assistant, run) == gone(assistant, other) == []


def test_the_one_that_stays_takes_what_the_other_had_more_of_and_becomes_no_newer() -> None:
    kept = tea("m1", confidence=0.9, expire_time=NOW + HOUR, age=HOUR)
    other = tea("m2", importance=0.8, is_explicit=True)
    after = united(kept, other)
    assert after == replace(
        kept, importance=0.8, is_explicit=True, expire_time=None, version=kept.version + 1
    )
    assert united(after, other) is after


REACHES = st.sampled_from(["", "a", "b"])
SAYINGS = st.lists(
    st.builds(
        Said,
        memory_id=st.uuids().map(str),
        words=st.sampled_from([b"tea", b"coffee"]),
        reach=st.tuples(REACHES, REACHES),
        confidence=st.sampled_from([0.1, 0.5]),
        importance=st.sampled_from([0.1, 0.5]),
        update_time=st.integers(0, 60).map(lambda hours: NOW - hours * HOUR),
    ),
    max_size=12,
    unique_by=lambda one: one.memory_id,
)


@given(SAYINGS, st.randoms())
def test_whoever_recalled_one_recalls_what_stays_and_a_second_sweep_finds_nothing(
    sayings: list[Said], random: object
) -> None:
    found = duplicates(sayings)
    by_id = {one.memory_id: one for one in sayings}
    lost = {duplicate.memory_id for duplicate in found}
    for duplicate in found:
        one, kept = by_id[duplicate.memory_id], by_id[duplicate.kept]
        assert duplicate.kept not in lost
        assert kept.words == one.words
        assert covers(kept.reach, one.reach)
    assert duplicates([one for one in sayings if one.memory_id not in lost]) == []
    random.shuffle(sayings)  # type: ignore[attr-defined]
    assert duplicates(sayings) == found
