"""Rank: the Plan's vectors, and that every part only ever helps."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.model import MemoryType
from memory_service.domain.rank import LEGACY, Weights, rank, recency
from memory_service.domain.recall import Candidate
from tests.builders.candidates import candidate, candidates
from tests.builders.memories import NOW

PLAN = Weights(relevance=0)
CONSTRAINT, PREFERENCE = MemoryType.CONSTRAINT, MemoryType.PREFERENCE
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)


def score(one: Candidate, weights: Weights = PLAN, conversation_id: str = "") -> float:
    (ranked,) = rank([one], weights=weights, now=NOW, conversation_id=conversation_id)
    return ranked.score


@pytest.mark.parametrize(
    ("worth", "one"),
    [
        (
            1.05,
            candidate(memory_type=CONSTRAINT, importance=0.9, confidence=0.95, is_explicit=True),
        ),
        (
            0.7675,
            candidate(memory_type=PREFERENCE, importance=0.85, confidence=0.8, age=10 * DAY),
        ),
        (0.44, candidate(importance=0.6, confidence=0.6, age=100 * DAY)),
        (
            0.7125,
            candidate(memory_type=CONSTRAINT, importance=0.95, confidence=0.6, age=100 * DAY),
        ),
    ],
)
def test_the_vectors_of_the_plan_come_out(worth: float, one: Candidate) -> None:
    assert score(one) == pytest.approx(worth, abs=1e-12)


@pytest.mark.parametrize(
    ("worth", "age"),
    [
        (1.0, timedelta(0)),
        (1.0, DAY),
        (0.85, DAY + TICK),
        (0.85, 7 * DAY),
        (0.65, 7 * DAY + TICK),
        (0.65, 30 * DAY),
        (0.45, 30 * DAY + TICK),
        (0.45, 90 * DAY),
        (0.25, 90 * DAY + TICK),
        (0.5, -TICK),
    ],
)
def test_recency_falls_in_steps(worth: float, age: timedelta) -> None:
    assert recency(NOW - age, NOW) == worth


def test_a_missing_time_is_worth_half() -> None:
    assert recency(None, NOW) == 0.5


def test_the_type_is_worth_its_bonus() -> None:
    plain = score(candidate())
    bonus = {kind: score(candidate(memory_type=kind)) - plain for kind in MemoryType}
    expected = {CONSTRAINT: 0.15, PREFERENCE: 0.10, MemoryType.TODO_HINT: 0.05}
    for kind, worth in bonus.items():
        assert worth == pytest.approx(expected.get(kind, 0.0))


def test_the_same_conversation_is_a_bonus_and_no_conversation_is_none() -> None:
    here, nowhere = candidate(conversation_id="c1"), candidate()
    assert score(here, conversation_id="c1") - score(here) == pytest.approx(0.08)
    assert score(here, conversation_id="c2") == score(here)
    assert score(nowhere, conversation_id="") == score(here)


def test_relevance_weighs_four_unless_set_otherwise() -> None:
    one = candidate(relevance=0.5)
    assert score(one, Weights()) - score(one) == pytest.approx(2.0)
    assert score(one, Weights(relevance=1)) - score(one) == pytest.approx(0.5)


def test_the_legacy_formula_has_its_own_bonuses() -> None:
    one = candidate(memory_type=CONSTRAINT, importance=1, confidence=1, is_explicit=True)
    assert score(one, LEGACY) == pytest.approx(0.35 + 0.30 + 0.20 + 0.10 + 0.12)
    liked = candidate(memory_type=PREFERENCE, importance=0, confidence=0, conversation_id="c1")
    assert score(liked, LEGACY, "c1") == pytest.approx(0.20 + 0.08)
    assert score(candidate(memory_type=MemoryType.TODO_HINT), LEGACY) == score(candidate(), LEGACY)


def test_equal_scores_come_by_id_downwards() -> None:
    rows = [candidate("m1"), candidate("m3"), candidate("m2")]
    assert [r.candidate.memory.memory_id for r in rank(rows, weights=PLAN, now=NOW)] == [
        "m3",
        "m2",
        "m1",
    ]


@given(st.lists(candidates()), st.floats(0, 8))
def test_the_parts_add_up_to_the_score(drawn: list[Candidate], weight: float) -> None:
    ranked = rank(drawn, weights=Weights(relevance=weight), now=NOW, conversation_id="c1")
    assert len(ranked) == len(drawn)
    for row in ranked:
        assert sum(row.score_parts.values()) == pytest.approx(row.score)
        assert set(row.score_parts) == {
            "importance",
            "confidence",
            "recency",
            "explicit",
            "same_conversation",
            "type_bonus",
            "relevance",
        }
    scores = [row.score for row in ranked]
    assert scores == sorted(scores, reverse=True)


@given(*[st.floats(0, 1)] * 4)
def test_more_relevance_or_importance_never_lowers_a_score(
    one: float, other: float, relevance: float, raised: float
) -> None:
    low, high = sorted((one, other))
    less, more = sorted((relevance, raised))
    worse = score(candidate(importance=low, relevance=less), Weights())
    assert score(candidate(importance=high, relevance=more), Weights()) >= worse


@given(st.lists(st.floats(0, 1), min_size=2, unique=True))
def test_rows_equal_in_all_else_come_in_the_order_of_relevance(relevances: list[float]) -> None:
    rows = [candidate("same", relevance=relevance) for relevance in relevances]
    ranked = rank(rows, weights=Weights(), now=NOW)
    scores = [row.candidate.relevance for row in ranked]
    assert [round(one, 9) for one in scores] == sorted((round(o, 9) for o in scores), reverse=True)


@given(st.datetimes(timezones=st.just(NOW.tzinfo)))
def test_recency_is_one_of_six_values(moment: datetime) -> None:
    assert recency(moment, NOW) in {1.0, 0.85, 0.65, 0.45, 0.25, 0.5}
