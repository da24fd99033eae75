"""The worked examples of RECALL 7."""

import numpy as np
import pytest

from memory_service.domain.recall import Leg
from memory_service.domain.relevance import Scored, exact_cosines
from tests.builders.memories import memory
from tests.builders.scored_rows import asked, built, turn, vector, worked_example

TOLERANCE = 1e-4


def _ask(text: str, query: np.ndarray | None, *, vectors: bool = True) -> Scored:
    rows = [(one, v if vectors else None) for one, v in worked_example()]
    return built(rows).score(asked(text, query, rows))


def _column(scored: Scored, name: str) -> list[float]:
    parts = {one: scored.explain(i)[name] for i, one in enumerate(scored.ids)}
    return [parts.get(f"r{i}", 0.0) for i in range(6)]


def _scores(scored: Scored) -> list[float]:
    known = {row.memory_id: row.score for row in scored}
    return [known.get(f"r{i}", 0.0) for i in range(6)]


def _near(*numbers: float) -> object:
    return pytest.approx(list(numbers), abs=TOLERANCE)


WHERE = "Where did Ben find a flat?"


def test_an_answer_stands_above_its_question_that_shares_more_words() -> None:
    scored = _ask(WHERE, vector(0.9, 0.4359, 0))
    assert _column(scored, "keywords") == _near(0.364697, 0.169033, 0, 0, 0, 0)
    assert _column(scored, "vector") == _near(0.976397, 0.855967, 0.289834, 0.028969, 0, 0.412941)
    assert _column(scored, "own") == _near(0.304398, 0.383025, 0.072459, 0.010863, 0, 0.154853)
    assert _column(scored, "near") == _near(0.137064, 0.400815, 0.226577, 0, 0, 0)
    assert _column(scored, "peak") == _near(0.182349, 0.182349, 0.182349, 0, 0, 0)
    assert _column(scored, "name") == _near(0, 0.05, 0, 0, 0, 0)
    assert _scores(scored) == _near(0.464102, 0.638028, 0.382073, 0.010804, 0, 0.143459)
    first = scored.explain(0)
    assert (first["coverage"], first["weight"]) == pytest.approx((1, 0.25))


def test_an_unseen_word_raises_the_weight_of_the_vector() -> None:
    scored = _ask("peanut allergy", vector(0, 0.5, 0.866))
    assert scored.ids[0] == "r3"
    best = scored.explain(0)
    assert best["coverage"] == pytest.approx(0.368571, abs=TOLERANCE)
    assert best["weight"] == pytest.approx(1.260286, abs=TOLERANCE)
    assert best["keywords"] == pytest.approx(0.218867, abs=TOLERANCE)
    assert best["vector"] == pytest.approx(0.990265, abs=TOLERANCE)
    assert best["own"] == pytest.approx(2.200326, abs=TOLERANCE)
    assert _scores(scored) == _near(0.097902, 0.251530, 0.362620, 0.889233, 0.792008, 0.675487)


def test_chinese_words_are_found_by_characters_and_pairs() -> None:
    scored = _ask("香菜", vector(0, 0.2, 0.98))
    assert scored.explain(0)["keywords"] == pytest.approx(0.428816, abs=TOLERANCE)
    assert scored.explain(0)["coverage"] == pytest.approx(1)
    assert _scores(scored) == _near(0, 0, 0, 0.279426, 0.635408, 0.237655)


def test_without_an_embedder_words_neighbours_and_names_carry() -> None:
    scored = _ask("Anna", None)
    assert _column(scored, "keywords") == _near(0.547046, 0, 0.569476, 0, 0, 0)
    assert _column(scored, "near")[1] == pytest.approx(0.387418, abs=TOLERANCE)
    assert _column(scored, "name") == _near(0.05, 0, 0.05, 0, 0, 0)
    assert _scores(scored) == _near(0.541183, 0.489394, 0.656417, 0, 0, 0)


def test_without_any_vector_in_the_store_words_carry() -> None:
    expected = _near(0.328676, 0.442186, 0.253051, 0, 0, 0)
    assert _scores(_ask(WHERE, vector(0.9, 0.4359, 0), vectors=False)) == expected
    assert _scores(_ask(WHERE, None)) == expected


@pytest.mark.parametrize("text", ["zzz qqq", "", "what is it?", "🙂"])
def test_nothing_known_and_no_vector_score_nothing(text: str) -> None:
    scored = _ask(text, None)
    assert len(scored) == 0
    assert scored.n == 6
    assert scored.max_cosine is None


def test_unseen_words_alone_give_the_vector_its_full_weight() -> None:
    first = _ask("zzz qqq", vector(1, 0, 0)).explain(0)
    assert (first["coverage"], first["weight"], first["keywords"]) == pytest.approx((0, 1.85, 0))


def test_the_parts_add_up_to_the_score() -> None:
    scored = _ask(WHERE, vector(0.9, 0.4359, 0))
    for position, row in enumerate(scored):
        parts = scored.explain(position)
        total = sum(parts[name] for name in ("own", "near", "peak", "name"))
        assert total == pytest.approx(-np.log(1 - row.score))


def test_a_row_tells_which_legs_found_it() -> None:
    rows = worked_example()
    legs = {row.memory_id: row.legs for row in built(rows).score(asked("Lyon", None, rows))}
    assert legs == {one: frozenset({Leg.KEYWORD}) for one in ("r0", "r1", "r2")}
    both = built(rows).score(asked("Lyon", vector(0.6, 0.8, 0), rows))
    found = {row.memory_id: row.legs for row in both}
    assert found["r1"] == {Leg.KEYWORD, Leg.SEMANTIC}
    assert found["r5"] == {Leg.SEMANTIC}


def test_only_the_two_hundred_nearest_count_as_found_by_the_semantic_leg() -> None:
    rows = [(memory(f"m{i:03}", "tea"), vector(1, i / 100, 0)) for i in range(250)]
    question = asked("tea", vector(1, 0.5, 0.1), rows)
    scored = built(rows).score(question)
    found = {row.memory_id for row in scored if Leg.SEMANTIC in row.legs}
    assert len(scored) == 250
    assert found == set(sorted(question.cosines, key=question.cosines.__getitem__)[-200:])
    assert scored.max_cosine == max(question.cosines.values())


def test_the_best_rows_may_be_asked_for_alone() -> None:
    scored = _ask(WHERE, vector(0.9, 0.4359, 0))
    assert [row.memory_id for row in scored.rows(2)] == ["r1", "r0"]
    assert len(scored.rows()) == len(scored) == 5


def test_neighbours_count_to_the_third_for_the_peak_and_to_the_second_for_near() -> None:
    rows = [(turn(f"t{i}", "tea" if i == 0 else f"word{i}", at=i), None) for i in range(6)]
    scored = built(rows).score(asked("tea", None, rows))
    parts = {one: scored.explain(i) for i, one in enumerate(scored.ids)}
    assert sorted(parts) == ["t0", "t1", "t2", "t3"]
    assert [parts[f"t{i}"]["near"] > 0 for i in range(4)] == [False, False, True, False]
    assert parts["t3"]["peak"] == pytest.approx(0.5 * parts["t0"]["keywords"])


def test_exact_cosines_leave_out_rows_without_a_direction() -> None:
    matrix = np.array([[2, 0], [0, 0], [np.nan, 1], [-1, 0], [np.inf, 0]], np.float32)
    query = vector(1, 0)
    assert exact_cosines(list("abcde"), matrix, query) == {"a": 1.0, "d": -1.0}
    assert exact_cosines(["a"], matrix[:1], np.zeros(2, np.float32)) == {}
    assert exact_cosines([], np.zeros((0, 2), np.float32), query) == {}
