from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memory_service.domain.centre import Vector
from memory_service.domain.gate import Gate, allows
from memory_service.domain.model import (
    Memory,
    MemoryStatus,
    MemoryType,
    Role,
    Scope,
    UserSettings,
)
from memory_service.domain.relevance import SEMANTIC_LIMIT, Question
from memory_service.domain.working_set import Change, WorkingSet
from tests.builders.memories import NOW, SCOPE, memory
from tests.builders.scored_rows import asked, built, turn, vector, worked_example


def _many(count: int) -> list[Change]:
    numbers = np.random.default_rng(7)
    return [
        (memory(f"m{i:04}", f"word{i % 7} word{i % 5}"), vector(*numbers.normal(size=8)))
        for i in range(count)
    ]


def _is_stale(rows: WorkingSet) -> bool:
    """Ask anew each time: the type checker would take the first answer for the last."""
    return rows.stale_mean


def _scores(rows: WorkingSet, question: Question) -> dict[str, float]:
    return {row.memory_id: row.score for row in rows.score(question)}


def test_a_working_set_knows_its_rows_and_whether_some_were_cut() -> None:
    rows = WorkingSet.build(worked_example(), revision=4, total=9)
    assert (len(rows), rows.revision, rows.rows_cut) == (6, 4, True)
    assert not WorkingSet.build(worked_example(), revision=4, total=6).rows_cut
    assert rows.memory("r3") == worked_example()[3][0]
    assert rows.memory("nobody") is None
    assert rows.memory("") is None
    assert sorted(one.memory_id for one in rows.memories()) == [f"r{i}" for i in range(6)]


def test_an_empty_working_set_answers_nothing() -> None:
    rows = built([])
    for allowed in (None, set[str](), Gate(SCOPE, UserSettings(), NOW), lambda _: True):
        scored = rows.score(Question("tea", vector(1, 0), {"gone": 0.9}), allowed)
        assert (list(scored), scored.n, scored.max_cosine) == ([], 0, None)
    assert not _is_stale(rows)


def test_the_indexed_text_has_date_and_speaker() -> None:
    rows = WorkingSet.build([(turn("m1", "hello", speaker="Ann"), None)], revision=1, total=1)
    assert "m1" in _scores(rows, Question("May 2026"))
    assert "m1" in _scores(rows, Question("ann"))


def test_a_change_is_found_and_what_it_replaced_is_not() -> None:
    rows = built(worked_example())
    rows.apply([(memory("r5", "User prefers milk."), None)], revision=2)
    assert "r5" not in _scores(rows, Question("coffee"))
    assert "r5" in _scores(rows, Question("milk"))
    assert rows.revision == 2


@pytest.mark.parametrize(
    "status", [MemoryStatus.DELETED, MemoryStatus.ARCHIVED, MemoryStatus.SUPERSEDED]
)
def test_a_row_that_is_not_active_any_more_is_gone(status: MemoryStatus) -> None:
    rows = built(worked_example())
    size = rows.nbytes
    gone = replace(worked_example()[5][0], status=status)
    rows.apply([(gone, None), (replace(gone, memory_id="never seen"), None)], revision=2)
    assert rows.memory("r5") is None
    assert _scores(rows, Question("coffee")) == {}
    assert rows.nbytes < size
    rows.apply([worked_example()[5]], revision=3)
    assert rows.nbytes == size
    assert "r5" in _scores(rows, Question("coffee"))


def test_the_last_of_several_changes_of_one_row_counts() -> None:
    rows = built([])
    one = memory("m1", "tea")
    rows.apply([(one, None), (replace(one, content="milk"), None)], revision=2)
    assert _scores(rows, Question("tea")) == {}
    assert list(_scores(rows, Question("milk"))) == ["m1"]


def test_a_row_whose_text_stays_keeps_its_vector_and_takes_the_rest() -> None:
    rows = built(worked_example())
    question = asked("zzz", vector(0.6, 0, 0.8), worked_example())
    before = _scores(rows, question)
    after = replace(worked_example()[5][0], importance=0.9)
    rows.apply([(after, None)], revision=2)
    assert rows.memory("r5") == after
    assert _scores(rows, question) == before
    assert rows.without_vector() == frozenset()


def test_a_row_may_become_a_turn_without_new_words() -> None:
    tea = turn("b", "tea", at=60)
    rows = built([(turn("a", "What do you drink?"), None), (replace(tea, is_verbatim=False), None)])
    assert "a" not in _scores(rows, Question("tea"))
    rows.apply([(tea, None)], revision=2)
    assert "a" in _scores(rows, Question("tea"))


def test_equal_scores_come_by_id_descending_whatever_came_first() -> None:
    rows = built([(memory(one, "tea"), None) for one in ("c", "a", "d")])
    rows.apply([(memory("b", "tea"), None)], revision=2)
    assert rows.score(Question("tea")).ids == ["d", "c", "b", "a"]
    gone = memory("b", "tea", status=MemoryStatus.DELETED)
    rows.apply([(gone, None)], revision=3)
    rows.apply([(memory("e", "tea"), None)], revision=4)
    rows.apply([(memory("b", "tea"), None)], revision=5)
    assert rows.score(Question("tea")).ids == ["e", "d", "c", "b", "a"]


def test_a_deleted_row_that_comes_back_to_its_slot_keeps_its_place() -> None:
    rows = built([(memory(one, "tea"), None) for one in ("a", "b", "c")])
    rows.apply([(memory("b", "tea", status=MemoryStatus.DELETED), None)], revision=2)
    rows.apply([(memory("b", "tea"), None)], revision=3)
    assert rows.score(Question("tea")).ids == ["c", "b", "a"]


# ---------------------------------------------------------------- gates


def _store() -> list[Change]:
    return [
        (memory("m1", "tea"), None),
        (memory("m2", "tea", sensitivity_level=1), None),
        (memory("m3", "tea", is_explicit=True, assistant_id="a1"), None),
        (memory("m4", "tea", run_id="run"), None),
        (memory("m5", "tea", memory_type=MemoryType.PREFERENCE), None),
        (memory("m6", "tea", expire_time=NOW), None),
        (memory("m7", "tea", expire_time=NOW + timedelta(microseconds=1)), None),
        (memory("m8", "tea", age=timedelta(days=30)), None),
        (memory("m9", "tea", user_id="somebody else"), None),
    ]


@pytest.mark.parametrize(
    "settings",
    [
        UserSettings(),
        UserSettings(memory_enabled=False),
        UserSettings(sensitive_memory_enabled=True),
        UserSettings(implicit_memory_enabled=False),
        UserSettings(disabled_types=frozenset({MemoryType.PREFERENCE})),
        UserSettings(retention=timedelta(days=30)),
        UserSettings(retention=timedelta(days=30, microseconds=1)),
    ],
)
@pytest.mark.parametrize("scope", [SCOPE, Scope(user_id="u1", assistant_id="a2", run_id="run")])
def test_a_gate_admits_the_rows_that_it_allows_one_by_one(
    settings: UserSettings, scope: Scope
) -> None:
    gate = Gate(scope, settings, NOW)
    rows = built(_store())
    expected = sorted(one.memory_id for one, _ in _store() if allows(gate, one))
    at_once = rows.score(Question("tea"), gate)
    one_by_one = rows.score(Question("tea"), lambda one: allows(gate, one))
    by_ids = rows.score(Question("tea"), set(expected))
    assert sorted(at_once.ids) == expected
    assert at_once.ids == one_by_one.ids == by_ids.ids
    assert at_once.n == one_by_one.n == by_ids.n == len(expected)


def test_a_gate_sees_the_newest_version_of_a_row() -> None:
    rows = built(_store())
    rows.apply([(memory("m1", "tea", expire_time=NOW), None)], revision=2)
    assert "m1" not in rows.score(Question("tea"), Gate(SCOPE, UserSettings(), NOW)).ids


def test_statistics_ignore_gates() -> None:
    rows = built(worked_example())
    question = asked("Lyon harbour coffee", vector(0.6, 0.8, 0), worked_example())
    alone = rows.score(question, {"r5"})
    together = rows.score(question)
    assert alone.ids == ["r5"]
    assert alone.explain(0) == together.explain(together.ids.index("r5"))
    assert alone.n == 1
    assert alone.max_cosine == pytest.approx(question.cosines["r5"])


def test_a_gated_row_is_nobodys_neighbour() -> None:
    said: list[Memory] = [
        turn("t0", "Anna: tea?", at=0),
        turn("t1", "Ben: with lemon", at=10),
        turn("t2", "Anna: fine", at=20),
    ]
    rows = built([(one, None) for one in said])
    assert rows.score(Question("tea")).ids == ["t1", "t0", "t2"]
    assert rows.score(Question("tea"), {"t1", "t2"}).ids == []
    behind_the_gap = rows.score(Question("tea"), {"t0", "t2"})
    assert behind_the_gap.ids == ["t0"]
    alone = behind_the_gap.explain(0)
    assert alone["own"] == pytest.approx(1.5 * alone["keywords"])


def test_what_the_assistant_said_lifts_its_neighbours_and_is_never_found() -> None:
    said = [
        turn("t0", "Where did you move?", at=0, role=Role.ASSISTANT),
        turn("t1", "To Lyon", at=10, role=Role.USER),
        turn("t2", "Lyon is lovely, moving there is wise", at=20, role=Role.ASSISTANT),
        turn("t3", "I like cake", at=9_000, role=Role.USER),
    ]
    rows = built([(one, None) for one in said])
    scored = rows.score(Question("where did I move"))
    assert (scored.ids, scored.n) == (["t1"], 2)
    parts = scored.explain(0)
    assert (parts["keywords"], parts["own"]) == (0.0, 0.0)
    assert parts["near"] > 0.5 * parts["peak"] > 0
    assert rows.score(Question("where did I move"), {"t1", "t3"}).ids == []


def test_what_the_assistant_said_takes_no_place_among_the_nearest() -> None:
    mine = [turn(f"u{i:03}", "x", at=20 * i, role=Role.USER) for i in range(SEMANTIC_LIMIT)]
    said = [turn(f"a{i:03}", "x", at=20 * i + 10, role=Role.ASSISTANT) for i in range(300)]
    rows = built([(one, None) for one in [*mine, *said]])
    near = dict.fromkeys((one.memory_id for one in said), 0.9)
    far = {one.memory_id: 0.1 for one in mine}
    scored = rows.score(Question("zzz", vector(1, 0), near | far))
    assert sum(scored.found) == SEMANTIC_LIMIT == len(scored)
    assert scored.max_cosine == pytest.approx(0.1)
    assert all(scored.explain(position)["near"] < 0.1 for position in range(len(scored)))


def test_a_turn_that_turns_out_to_be_the_assistants_is_no_longer_found() -> None:
    one = turn("t1", "tea", role=Role.USER)
    rows = built([(one, None)])
    assert rows.score(Question("tea")).ids == ["t1"]
    rows.apply([(replace(one, role=Role.ASSISTANT), None)], revision=2)
    assert rows.score(Question("tea")).ids == []
    rows.apply([(replace(one, role=None), None)], revision=3)
    assert rows.score(Question("tea")).ids == ["t1"]


# ---------------------------------------------------------------- the mean


def _centred(rows: list[Change], query: Vector, one: str) -> float:
    """Give d by the definition of RECALL 1.3, with all vectors at hand."""
    known = {m.memory_id: v for m, v in rows if v is not None}
    matrix = np.array(list(known.values()), np.float64)
    mean = matrix.mean(axis=0) * len(known) / (len(known) + 20)
    a, b = query - mean, known[one] - mean
    return max(0.0, float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))


@pytest.mark.parametrize("count", [1, 3, 49, 50, 120])
def test_the_centred_cosine_needs_no_vectors(count: int) -> None:
    rows, query = _many(count), vector(1, 2, 0, 0, -1, 0, 0, 1)
    scored = built(rows).score(asked("zzz", query, rows))
    assert scored.n == count
    for row in scored:
        assert row.d == pytest.approx(_centred(rows, query, row.memory_id), abs=1e-5)


def test_below_fifty_rows_the_mean_is_exact_after_every_write() -> None:
    rows, query = _many(49), vector(1, 2, 0, 0, -1, 0, 0, 1)
    growing = built([])
    for revision, change in enumerate(rows):
        growing.apply([change], revision=revision)
        assert not _is_stale(growing)
    gone = (replace(rows[0][0], status=MemoryStatus.DELETED), None)
    growing.apply([gone], revision=99)
    for row in growing.score(asked("zzz", query, rows[1:])):
        assert row.d == pytest.approx(_centred(rows[1:], query, row.memory_id), abs=1e-5)


def test_the_mean_is_stale_when_a_tenth_of_the_vectors_has_changed() -> None:
    rows = _many(120)
    large = built(rows[:100])
    large.apply(rows[100:109], revision=2)
    assert not _is_stale(large)
    large.apply(rows[109:110], revision=3)
    assert _is_stale(large)
    stored = {m.memory_id: v for m, v in rows[:110] if v is not None}
    large.set_mean({**stored, "gone": vector(1, 1)})
    assert not _is_stale(large)
    query = vector(1, 2, 0, 0, -1, 0, 0, 1)
    for row in large.score(asked("zzz", query, rows[:110])):
        assert row.d == pytest.approx(_centred(rows[:110], query, row.memory_id), abs=1e-5)


def test_the_mean_is_stale_when_fewer_than_fifty_are_left_of_more() -> None:
    rows = _many(50)
    shrinking = built(rows)
    assert not _is_stale(shrinking)
    shrinking.apply([(replace(rows[0][0], status=MemoryStatus.DELETED), None)], revision=2)
    assert _is_stale(shrinking)
    shrinking.set_mean({m.memory_id: v for m, v in rows[1:] if v is not None})
    assert not _is_stale(shrinking)
    shrinking.apply([(replace(rows[1][0], status=MemoryStatus.DELETED), None)], revision=3)
    assert not _is_stale(shrinking)


def test_a_new_row_of_a_large_store_is_measured_against_the_old_mean() -> None:
    rows = _many(61)
    large = built(rows[:60])
    large.apply(rows[60:], revision=2)
    query = vector(1, 2, 0, 0, -1, 0, 0, 1)
    found = {row.memory_id: row.d for row in large.score(asked("zzz", query, rows))}
    exact = _centred(rows, query, "m0060")
    assert found.get("m0060", 0.0) == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize(
    "none", [None, np.zeros(8, np.float32), np.full(8, np.nan), np.full(8, np.inf)]
)
def test_zero_and_broken_vectors_are_no_vectors(none: Vector | None) -> None:
    rows = _many(60)
    assert built([*rows, (memory("new"), none)]).without_vector() == {"new"}
    large = built(rows)
    large.apply([(memory("new"), none)], revision=2)
    assert large.without_vector() == {"new"}
    large.apply([(memory("new"), vector(1, 0, 0, 0, 0, 0, 0, 0))], revision=3)
    assert large.without_vector() == frozenset()


def test_a_row_that_the_index_knows_better_is_as_near_to_the_mean_as_the_others() -> None:
    rows = [*_many(60), (memory("new"), None)]
    query = vector(1, 2, 0, 0, -1, 0, 0, 1)
    scored = built(rows).score(Question("zzz", query, {"new": 0.8, "unknown": 0.9}))
    assert scored.ids == ["new"]
    assert 0.6 < scored.d[0] <= 1
    assert scored.max_cosine == pytest.approx(0.8)


def test_without_any_known_vector_the_raw_cosine_stands_in() -> None:
    rows = built([(memory("m1"), None), (memory("m2"), None)])
    scored = rows.score(Question("zzz", vector(1, 0), {"m1": 0.4, "m2": -0.2}))
    assert scored.ids == ["m1"]
    assert scored.d.tolist() == pytest.approx([0.4])


def test_broken_cosines_and_queries_count_for_nothing() -> None:
    rows = built(worked_example())
    broken = {"r0": float("nan"), "r1": float("inf"), "r2": 1.0000002}
    scored = rows.score(Question("zzz", vector(0, 1, 0), broken))
    assert scored.max_cosine == 1.0
    assert set(scored.ids) <= {"r0", "r1", "r2", "r3"}
    nowhere = rows.score(Question("zzz", np.zeros(3, np.float32), {"r0": 0.5}))
    assert list(nowhere) == []
