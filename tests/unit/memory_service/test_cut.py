"""The worked examples of RECALL 8.4, and the rules one by one."""

from math import log

import numpy as np
import pytest

from memory_service.domain.bank import BANK
from memory_service.domain.cut import CutResult, Rule, cut, make_ruler
from memory_service.domain.recall import Cut
from memory_service.domain.small_talk import is_small_talk
from tests.builders.memories import memory
from tests.builders.scored_rows import asked, built, vector, worked_example

TOY_BANK = np.array([(1, 0, 0), (0.8, 0, 0.6), (0, 0.8, -0.6), (-0.6, 0.8, 0)], np.float32)
RULER = make_ruler(TOY_BANK)
WHERE = "Where did Ben find a flat?"


def _cut(text: str, query: np.ndarray | None, mode: Cut, ruler: object = RULER) -> CutResult:
    rows = worked_example()
    scored = built(rows).score(asked(text, query, rows))
    return cut(scored, text, query, ruler, mode)  # type: ignore[arg-type]


def test_the_ruler_is_mean_and_population_deviation_of_all_pairs() -> None:
    assert pytest.approx(0, abs=1e-3) == RULER.mean
    assert pytest.approx(0.543078, abs=1e-3) == RULER.deviation


def test_the_bank_has_forty_different_messages() -> None:
    assert len(set(BANK)) == len(BANK) == 40


@pytest.mark.parametrize(
    ("text", "query", "parts", "kept"),
    [
        (WHERE, (0.9, 0.4359, 0), (0.6325, 1.8074, 1.2084), "r1 r0 r2"),
        ("peanut allergy", (0, 0.5, 0.866), (0.9373, 1.8281, 0.5644), "r3 r4 r5"),
        ("香菜", (0, 0.2, 0.98), (0.6895, 1.8045, 0.4591), "r4 r3 r5"),
        ("What do I drink?", (0.7, 0, 0.714), (1.0163, 1.8252, 0.7785), "r5 r4 r3"),
    ],
)
def test_tight_keeps_the_rows_of_the_worked_examples(
    text: str, query: tuple[float, ...], parts: tuple[float, ...], kept: str
) -> None:
    result = _cut(text, vector(*query), Cut.TIGHT)
    assert result.kept == kept.split()
    got = [result.parts[name] for name in ("G", "x", "y")]
    assert got == pytest.approx(list(parts), abs=1e-3)
    assert result.parts["theta"] == 0.04


def test_small_talk_finds_nothing_whatever_its_vector() -> None:
    for mode in Cut:
        assert _cut("ok thanks!", vector(0, 1, 0), mode) == CutResult((), Rule.SMALL_TALK)


def test_off_keeps_every_row_with_a_score() -> None:
    result = _cut(WHERE, vector(0.9, 0.4359, 0), Cut.OFF)
    assert result.kept == ["r1", "r0", "r2", "r5", "r3"]
    assert (result.rule, result.parts) == (Rule.NONE, {})


def test_gate_keeps_all_or_nothing() -> None:
    assert len(_cut(WHERE, vector(0.9, 0.4359, 0), Cut.GATE).kept) == 5

    rows = [(memory("tea", "tea"), vector(1, 0, 0)), (memory("milk", "milk"), vector(1, 0, 1))]
    chat, query = "zzz tea qqq www", vector(0, 1, 0)
    scored = built(rows).score(asked(chat, query, rows))
    assert scored.ids == ["tea"]
    far = cut(scored, chat, query, RULER, Cut.GATE)
    assert (far.kept, far.rule) == ((), Rule.GATE)
    assert far.parts["G"] < far.parts["theta"]
    assert cut(scored, chat, query, RULER, Cut.OFF).kept == ["tea"]


def test_strict_keeps_fewer_rows_than_tight() -> None:
    strict = _cut(WHERE, vector(0.9, 0.4359, 0), Cut.STRICT)
    assert (strict.kept, strict.rule) == (["r1", "r0"], Rule.ROWS)
    assert strict.parts["theta"] == 0.08


def test_a_question_that_matches_nothing_finds_nothing() -> None:
    assert _cut("zzz", None, Cut.OFF) == CutResult((), Rule.ZERO)


@pytest.mark.parametrize(
    ("query", "ruler"),
    [
        (None, RULER),
        (vector(1, 0, 0), None),
        (vector(1, 0, 0), make_ruler(TOY_BANK[[0, 0, 0]])),
        (vector(1, 0, 0), make_ruler(np.zeros((40, 3), np.float32))),
        (np.zeros(3, np.float32), RULER),
    ],
)
def test_without_embedder_or_a_ruler_that_tells_differences_the_gate_is_not_asked(
    query: np.ndarray | None, ruler: object
) -> None:
    result = _cut(WHERE, query, Cut.TIGHT, ruler)
    assert result.parts == {}
    assert result.kept


def test_without_vectors_the_row_modes_go_by_score_alone() -> None:
    result = _cut(WHERE, None, Cut.STRICT)
    assert (result.kept, result.rule) == (["r1", "r0"], Rule.ROWS)
    assert _cut(WHERE, None, Cut.TIGHT).rule is Rule.NONE


def test_many_scored_rows_raise_the_bar() -> None:
    few = worked_example()
    many = few + [(memory(f"s{i}", "unrelated"), None) for i in range(100)]
    query = vector(0.9, 0.4359, 0)
    few_parts, many_parts = (
        cut(built(rows).score(asked("zzz", query, rows)), "zzz", query, RULER, Cut.GATE).parts
        for rows in (few, many)
    )
    assert many_parts["G"] == pytest.approx(few_parts["G"] - 0.05 * log(106 / 6), abs=1e-3)


@pytest.mark.parametrize(
    "text", ["what am I doing", "I'm lost", "MY flat", "我的房子", "咱家", "us"]
)
def test_speaking_of_oneself_lowers_the_bar(text: str) -> None:
    query = vector(0, 0.2, 0.98)
    rows = [(memory("m", "unrelated words"), query)]
    scored = built(rows).score(asked(text, query, rows))
    mine = cut(scored, text, query, RULER, Cut.GATE).parts["G"]
    other = cut(scored, "that house", query, RULER, Cut.GATE).parts["G"]
    assert mine == pytest.approx(other + 0.05)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "hi",
        "OK, thanks a lot!",
        "That’s great, 'awesome'",
        "good morning!!",
        "您好，谢谢你的帮助！",
        "ok 好的",
        "🙂👍",
        "...",
        "没问题",
        "可以",
    ],
)
def test_greetings_thanks_and_bare_punctuation_are_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "hi, where do I live?",
        "ok 5",
        "voilà",
        "Привет",
        "ありがとう",
        "谢谢你的咖啡",
        "你好，我叫什么？",
        "٣",
    ],
)
def test_a_message_with_any_other_word_is_not_small_talk(text: str) -> None:
    assert not is_small_talk(text)
