"""Budgets: who may stay, and that every row left out is counted once."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.budget import (
    Kept,
    first,
    screen,
    within_bytes,
    within_limit,
    within_tokens,
    within_types,
)
from memory_service.domain.model import MemoryType
from memory_service.domain.recall import Candidate, DropReason, Leg, Ranked, TypeBudgets
from memory_service.domain.size import estimated_bytes, estimated_tokens, text_tokens
from tests.builders.candidates import candidate, candidates, distinct_ranked, ranked

CONSTRAINT = MemoryType.CONSTRAINT
PINNED = frozenset({Leg.PINNED})


def ids(rows: list[Ranked]) -> list[str]:
    return [row.candidate.memory.memory_id for row in rows]


def constraints(rows: list[Ranked]) -> list[Ranked]:
    return [row for row in rows if row.candidate.memory.memory_type is CONSTRAINT]


def test_each_type_keeps_its_best_up_to_its_budget() -> None:
    rows = ranked(
        *[
            candidate(f"{kind}{n}", memory_type=kind, importance=n / 10)
            for kind in MemoryType
            for n in range(8)
        ]
    )
    kept, dropped = within_types(rows, TypeBudgets())
    by_type = Counter(row.candidate.memory.memory_type for row in kept)
    assert by_type[CONSTRAINT] == 5
    assert by_type[MemoryType.PREFERENCE] == 5
    assert by_type[MemoryType.TODO_HINT] == 3
    assert by_type[MemoryType.FACT] + by_type[MemoryType.UNKNOWN] == 5
    assert len(kept) == 18
    assert {one.reason for one in dropped} == {DropReason.TYPE_BUDGET}
    assert [one for one in ids(kept) if one.startswith("constraint")] == [
        f"constraint{n}" for n in (7, 6, 5, 4, 3)
    ]


def test_a_budget_of_zero_is_none_of_the_type() -> None:
    rows = ranked(candidate("m1", memory_type=CONSTRAINT), candidate("m2"))
    kept, _ = within_types(rows, TypeBudgets(constraint=0))
    assert ids(kept) == ["m2"]


def test_a_limit_is_filled_with_constraints_first_and_keeps_rank_order() -> None:
    rows = ranked(
        candidate("fact", relevance=0.9),
        candidate("c1", memory_type=CONSTRAINT, relevance=0.0),
        candidate("c2", memory_type=CONSTRAINT, relevance=0.1),
    )
    assert ids(rows) == ["fact", "c2", "c1"]
    assert ids(within_limit(rows, 2)[0]) == ["c2", "c1"]
    assert ids(within_limit(rows, 1)[0]) == ["c2"]
    assert ids(within_limit(rows, 0)[0]) == ["fact", "c2", "c1"]
    assert [one.memory_id for one in within_limit(rows, 2)[1]] == ["fact"]
    assert ids(first(rows, 1)[0]) == ["fact"]


def test_tokens_leave_from_the_lowest_rank_and_constraints_last() -> None:
    rows = ranked(
        candidate("f1", "a" * 40, relevance=0.9),
        candidate("f2", "b" * 40, relevance=0.8),
        candidate("c1", "c" * 40, memory_type=CONSTRAINT),
    )
    assert [ids(within_tokens(rows, budget)[0]) for budget in (30, 29, 19, 9)] == [
        ["f1", "f2", "c1"],
        ["f1", "c1"],
        ["c1"],
        [],
    ]
    assert ids(within_tokens(rows, 0)[0]) == ["f1", "f2", "c1"]


def test_a_row_that_alone_is_too_large_does_not_empty_the_answer() -> None:
    rows = ranked(candidate("huge", "a" * 4000, relevance=0.9), candidate("small", "tea"))
    kept, dropped = within_tokens(rows, 10)
    assert ids(kept) == ["small"]
    assert [one.memory_id for one in dropped] == ["huge"]


def test_bytes_are_always_held() -> None:
    rows = ranked(candidate("m1", relevance=0.9), candidate("m2"))
    one = estimated_bytes(rows[0])
    assert ids(within_bytes(rows, 2 * one)[0]) == ["m1", "m2"]
    assert ids(within_bytes(rows, 2 * one - 1)[0]) == ["m1"]
    assert within_bytes(rows, 0)[0] == []
    assert {gone.reason for gone in within_bytes(rows, -1)[1]} == {DropReason.RESPONSE_BYTES}


def test_the_screen_never_holds_back_a_pinned_row() -> None:
    rows = [
        candidate("pinned", legs=PINNED, held_back=True),
        candidate("cut", relevance=0.9, held_back=True),
        candidate("weak", relevance=0.1),
        candidate("fits", relevance=0.2),
    ]
    kept, dropped = screen(rows, min_relevance=0.2)
    assert [one.memory.memory_id for one in kept] == ["pinned", "fits"]
    assert {one.memory_id: one.reason for one in dropped} == {
        "cut": DropReason.CUT,
        "weak": DropReason.BELOW_MIN_RELEVANCE,
    }


def test_a_min_relevance_of_zero_is_no_threshold() -> None:
    assert len(screen([candidate(relevance=0.0)], min_relevance=0.0)[0]) == 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("喜欢茶", 3), ("🙂", 2), ("a🙂", 3)],
)
def test_tokens_are_estimated_from_the_bytes_of_each_character(text: str, tokens: int) -> None:
    assert text_tokens(text) == tokens


def test_a_row_without_content_counts_its_title() -> None:
    (row,) = ranked(candidate("m1", "", title="four"))
    assert estimated_tokens(row) == 1


BUDGETS: list[Callable[[list[Ranked], int], Kept]] = [
    lambda rows, n: within_types(rows, _same(n)),
    within_limit,
    within_tokens,
    lambda rows, n: within_bytes(rows, 300 * n),
]


def _same(n: int) -> TypeBudgets:
    return TypeBudgets(constraint=n, preference=n, todo_hint=n, fact=n)


@given(distinct_ranked(), st.integers(0, 60), st.sampled_from(BUDGETS))
def test_what_is_kept_and_what_is_dropped_is_everything_once(
    rows: list[Ranked], n: int, budget: Callable[[list[Ranked], int], Kept]
) -> None:
    kept, dropped = budget(rows, n)
    assert sorted(ids(kept) + [one.memory_id for one in dropped]) == sorted(ids(rows))
    assert ids(kept) == [one for one in ids(rows) if one in set(ids(kept))]


@given(distinct_ranked(), st.integers(0, 40), st.integers(1, 40))
def test_a_constraint_within_its_budget_is_never_pushed_out(
    rows: list[Ranked], budget: int, limit: int
) -> None:
    kept, _ = within_types(rows, TypeBudgets(constraint=budget))
    assert ids(constraints(kept)) == ids(constraints(rows))[:budget]
    limited, _ = within_limit(kept, limit)
    assert ids(constraints(limited)) == ids(constraints(kept))[:limit]
    assert len(limited) == min(limit, len(kept))


@given(distinct_ranked(), st.integers(1, 500))
def test_other_types_leave_before_a_constraint_that_fits(rows: list[Ranked], budget: int) -> None:
    kept, _ = within_tokens(rows, budget)
    assert sum(map(estimated_tokens, kept)) <= budget
    fitting = [row for row in constraints(rows) if estimated_tokens(row) <= budget]
    if ids(constraints(kept)) != ids(fitting):
        assert ids(kept) == ids(constraints(kept)) == ids(fitting)[: len(kept)]


@given(distinct_ranked(), st.integers(1, 500), st.integers(0, 100))
def test_a_larger_budget_keeps_all_that_fitted_a_smaller_one_alone(
    rows: list[Ranked], budget: int, more: int
) -> None:
    small, _ = within_limit(rows, budget)
    large, _ = within_limit(rows, budget + more)
    assert set(ids(small)) <= set(ids(large))


@given(st.lists(candidates()), st.floats(0, 1))
def test_the_screen_counts_every_row(drawn: list[Candidate], floor: float) -> None:
    kept, dropped = screen(drawn, min_relevance=floor)
    assert len(kept) + len(dropped) == len(drawn)
    assert all(one.pinned or one.relevance >= floor for one in kept)


@given(st.text())
def test_the_estimate_is_never_zero_for_text_and_adds_up(text: str) -> None:
    worth = {1: 0.25, 2: 0.5, 3: 1.0, 4: 2.0}
    expected = sum(worth[len(character.encode())] for character in text)
    assert expected <= text_tokens(text) < expected + 1
