from collections.abc import Mapping
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.domain.centre import Vector
from memory_service.domain.model import MemoryStatus, Role
from memory_service.domain.relevance import Scored
from memory_service.domain.working_set import Change
from tests.builders.memories import memory
from tests.builders.plain_recipe import plain_recipe
from tests.builders.scored_rows import asked, built, turn, vector

ODD = [
    "",
    "🙂👩‍🚀",
    "我" * 3000,
    "tea " * 3000,
    "\x00'\"%_",
    "?" * 50,
    "[" * 40,
    "Anna:",
    "(x) 小雨：",
]
WORDS = st.sampled_from(
    [
        "Anna",
        "Ben",
        "tea",
        "milk",
        "Lyon",
        "harbour",
        "香菜",
        "用户",
        "flat?",
        "5",
        "the",
        "？",
        "café",
    ]
)
TEXT = st.one_of(st.lists(WORDS, max_size=8).map(" ".join), st.sampled_from(ODD), st.text())
VECTOR = st.one_of(
    st.none(),
    st.tuples(*[st.integers(-3, 3)] * 3).filter(any).map(lambda numbers: vector(*numbers)),
)


@st.composite
def _row(draw: st.DrawFn) -> Change:
    memory_id = f"m{draw(st.integers(0, 30)):02}"
    text = draw(TEXT)
    if not draw(st.booleans()):
        return memory(memory_id, text), draw(VECTOR)
    place = draw(st.sampled_from(["", "c1", "c2"]))
    at = draw(st.sampled_from([0, 10, 20, 4000]))
    speaker = draw(st.sampled_from(["", "Anna", "小雨"]))
    role = draw(st.sampled_from([None, Role.USER, Role.ASSISTANT]))
    said = turn(memory_id, text, at=at, conversation_id=place, speaker=speaker, role=role)
    return said, None if said.supports_only else draw(VECTOR)


ROWS = st.lists(_row(), max_size=12, unique_by=lambda row: row[0].memory_id)


def _same(one: Scored, other: Scored) -> None:
    scores = _by_id(one), _by_id(other)
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert one.n == other.n
    assert one.max_cosine == pytest.approx(other.max_cosine)


ALL_IDS = [f"m{i:02}" for i in range(31)]


def _by_id(scored: Scored) -> Mapping[str, float]:
    """Give every id its score, 0 without one: rounding decides whether a tiny one is there."""
    found = dict(zip(scored.ids, scored.scores.tolist(), strict=True))
    return {one: found.get(one, 0.0) for one in ALL_IDS}


@settings(deadline=None)
@given(ROWS, TEXT, VECTOR)
def test_scores_are_finite_and_in_order_below_one(
    rows: list[Change], text: str, query: Vector | None
) -> None:
    scored = built(rows).score(asked(text, query, rows))
    ranking = [(row.score, row.memory_id) for row in scored]
    assert ranking == sorted(ranking, reverse=True)
    assert all(0 < row.score < 1 and 0 <= row.c < 1 and 0 <= row.d <= 1 for row in scored)
    assert all(row.legs for row in scored)
    assert scored.n == sum(not one.supports_only for one, _ in rows)
    for position in range(len(scored)):
        assert np.isfinite(list(scored.explain(position).values())).all()


@settings(deadline=None)
@given(ROWS, TEXT, VECTOR, st.randoms())
def test_the_order_of_the_rows_never_matters(
    rows: list[Change], text: str, query: Vector | None, random: Random
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    question = asked(text, query, rows)
    one, other = built(rows).score(question), built(shuffled).score(question)
    assert one.ids == other.ids
    assert one.scores.tolist() == other.scores.tolist()


@settings(max_examples=200, deadline=None)
@given(
    ROWS, st.lists(st.lists(st.tuples(_row(), st.booleans()), max_size=4), max_size=4), TEXT, VECTOR
)
def test_changes_applied_give_what_building_anew_gives(
    rows: list[Change], batches: list[list[tuple[Change, bool]]], text: str, query: Vector | None
) -> None:
    changed = built(rows)
    expected = {one.memory_id: (one, v) for one, v in rows}
    for revision, batch in enumerate(batches, start=2):
        changes: list[Change] = []
        for (one, given_vector), gone in batch:
            before = expected.get(one.memory_id)
            # A vector belongs to a text: rows that keep their text keep their vector.
            kept = before and before[0].content == one.content and before[1] is not None
            v = before[1] if before and kept else given_vector
            expected.pop(one.memory_id, None)
            if gone:
                changes.append((replace(one, status=MemoryStatus.DELETED), None))
            else:
                expected[one.memory_id] = (one, v)
                changes.append((one, v))
        changed.apply(changes, revision=revision)
        changed.score(asked(text, None, []))
    now = list(expected.values())
    anew = built(now)
    question = asked(text, query, now)
    _same(changed.score(question), anew.score(question))
    assert changed.nbytes == anew.nbytes
    assert changed.without_vector() == anew.without_vector()


@settings(deadline=None)
@given(ROWS, TEXT, VECTOR, st.sets(st.integers(0, 30)))
def test_the_recipe_written_down_plainly_gives_the_same_scores(
    rows: list[Change], text: str, query: Vector | None, gated: set[int]
) -> None:
    allowed = {one.memory_id for one, _ in rows} - {f"m{i:02}" for i in gated}
    question = asked(text, query, rows)
    scored = built(rows).score(question, allowed)
    expected = plain_recipe(rows, text, query, allowed)
    assert scored.n == len(expected)
    plainly = {one: expected.get(one, 0.0) for one in ALL_IDS}
    assert _by_id(scored) == pytest.approx(plainly, abs=1e-4)
