"""Merge: pinned rows first, and a last look through the gate."""

from collections import Counter

from memory_service.domain.gate import Gate
from memory_service.domain.merge import MOST_OF_A_TYPE, allowed, merge, searched
from memory_service.domain.model import Memory, MemoryType, UserSettings
from memory_service.domain.recall import Leg
from memory_service.domain.relevance import Question
from memory_service.domain.working_set import WorkingSet
from tests.builders.candidates import candidate
from tests.builders.memories import NOW, SCOPE, memory

TEA, COFFEE = memory("m1", "User likes tea."), memory("m2", "User likes coffee with tea biscuits.")


def working_set() -> WorkingSet:
    return WorkingSet.build([(TEA, None), (COFFEE, None)], revision=1, total=2)


def test_pinned_rows_come_first_and_doubles_stay() -> None:
    merged = merge([COFFEE], [candidate("m1"), candidate("m2")])
    assert [one.memory.memory_id for one in merged] == ["m2", "m1", "m2"]
    assert [one.pinned for one in merged] == [True, False, False]
    assert merged[0].relevance == 0


def test_searched_rows_carry_score_and_legs_and_no_parts_unless_explained() -> None:
    rows = working_set()
    scored = rows.score(Question("tea"))
    found = searched(scored, rows.memory, kept=scored.ids)
    assert [one.memory for one in found] == [rows.memory(one) for one in scored.ids]
    assert [one.relevance for one in found] == scored.scores.tolist()
    assert {one.legs for one in found} == {frozenset({Leg.KEYWORD})}
    assert all(not one.relevance_parts and not one.held_back for one in found)


def test_explained_rows_carry_their_own_parts_and_those_of_the_cut() -> None:
    rows = working_set()
    scored = rows.score(Question("tea"))
    found = searched(scored, rows.memory, kept=scored.ids, cut_parts={"G": 0.5})
    assert found[0].relevance_parts["G"] == 0.5
    assert {"keywords", "vector", "coverage", "weight", "own", "near", "peak", "name"} < set(
        found[0].relevance_parts
    )


def test_rows_that_the_cut_did_not_keep_are_held_back() -> None:
    rows = working_set()
    scored = rows.score(Question("tea"))
    found = searched(scored, rows.memory, kept=scored.ids[:1])
    assert [one.held_back for one in found] == [False, True]


def test_of_each_type_no_more_are_brought_than_a_budget_can_hold() -> None:
    facts = [memory(f"f{n:04}", f"Tea {n}") for n in range(MOST_OF_A_TYPE + 50)]
    hints = [memory(f"t{n}", f"Tea hint {n}", memory_type=MemoryType.TODO_HINT) for n in range(3)]
    rows = WorkingSet.build([(row, None) for row in facts + hints], revision=1, total=253)
    scored = rows.score(Question("tea"))
    found = searched(scored, rows.memory, kept=scored.ids)
    by_type = Counter(one.memory.memory_type for one in found)
    assert by_type == {MemoryType.FACT: MOST_OF_A_TYPE, MemoryType.TODO_HINT: 3}
    scores = [one.relevance for one in found]
    assert scores == sorted(scores, reverse=True)


def test_rows_that_are_gone_meanwhile_are_left_out() -> None:
    scored = working_set().score(Question("tea"))

    def only_coffee(memory_id: str) -> Memory | None:
        return COFFEE if memory_id == "m2" else None

    found = searched(scored, only_coffee, kept=scored.ids)
    assert [one.memory.memory_id for one in found] == ["m2"]


def test_the_last_look_refuses_rows_of_others_whatever_leg_brought_them() -> None:
    gate = Gate(SCOPE, UserSettings(), NOW)
    theirs = memory("m3", user_id="u2")
    merged = merge([theirs, TEA], [candidate("m4", user_id="u2"), candidate("m5")])
    assert [one.memory.memory_id for one in allowed(gate, merged)] == ["m1", "m5"]
