"""What becomes of a fact, by what it is to the memories that are there."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.decide import (
    JudgedBy,
    Offer,
    decide,
    is_comparable,
    same_hash,
    updated,
)
from memory_service.domain.ingest import (
    Action,
    Candidate,
    Decision,
    Judgement,
    Reason,
    Relation,
)
from memory_service.domain.model import Memory, MemoryStatus, MemoryType
from memory_service.domain.text import content_hash
from tests.builders.facts import drafted
from tests.builders.memories import NOW, memory

BY = JudgedBy("small", "p1")
OLD = timedelta(days=30)


def preference(memory_id: str, content: str, **more: Any) -> Memory:
    values: dict[str, Any] = {"memory_type": MemoryType.PREFERENCE, "age": OLD} | more
    return memory(memory_id, content, **values)


TEA = preference("m1", "Prefers tea")
MILK = preference("m2", "Prefers milk")


def told(memory_id: str, relation: Relation, merged: str = "") -> Judgement:
    return Judgement(memory_id=memory_id, relation=relation, merged=merged)


def decided(
    *judgements: Judgement,
    offered: Sequence[Memory] = (TEA, MILK),
    fact: Memory | None = None,
) -> tuple[Decision, Sequence[str]]:
    offers = [Offer(row, 0.9 - place / 10) for place, row in enumerate(offered)]
    return decide(fact or drafted("Prefers coffee"), offers, judgements, BY)


def test_a_fact_that_is_related_to_nothing_is_added_and_the_decision_says_how() -> None:
    decision, warnings = decided()
    assert decision == Decision(
        fact=drafted("Prefers coffee"),
        action=Action.ADD,
        reason=Reason.NEW,
        memory_id="new",
        candidates=(
            Candidate(memory_id="m1", score=0.9, relation=Relation.UNRELATED),
            Candidate(memory_id="m2", score=0.8, relation=Relation.UNRELATED),
        ),
        model="small",
        prompt_version="p1",
    )
    assert not warnings


def test_a_duplicate_goes_first_and_is_refreshed() -> None:
    decision, _ = decided(told("m1", Relation.CONFLICT), told("m2", Relation.DUPLICATE))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.DUPLICATE)
    assert (decision.memory_id, decision.superseded_ids) == ("m2", ())
    assert decision.fact.memory_id == ""


def test_the_best_update_goes_before_conflicts() -> None:
    decision, _ = decided(
        told("m2", Relation.UPDATE, "Prefers milk, cold"),
        told("m1", Relation.UPDATE, "Prefers tea, hot"),
    )
    assert (decision.action, decision.reason) == (Action.UPDATE, Reason.UPDATE)
    assert (decision.memory_id, decision.fact.content) == ("m1", "Prefers tea, hot")
    decision, _ = decided(
        told("m1", Relation.CONFLICT), told("m2", Relation.UPDATE, "Prefers milk, cold")
    )
    assert decision.memory_id == "m2"


def test_a17_conflicts_make_way_for_the_new_memory() -> None:
    decision, _ = decided(told("m1", Relation.CONFLICT), told("m2", Relation.CONFLICT))
    assert (decision.action, decision.reason) == (Action.ADD, Reason.CONFLICT)
    assert (decision.memory_id, decision.superseded_ids) == ("new", ("m1", "m2"))


def test_a13_what_was_not_offered_is_no_target() -> None:
    decision, warnings = decided(
        told("12", Relation.UPDATE, "T"),
        told("13", Relation.CONFLICT),
        told("", Relation.DUPLICATE),
    )
    assert (decision.action, decision.reason) == (Action.ADD, Reason.NEW)
    assert decision.superseded_ids == ()
    assert list(warnings) == ["unknown_target"] * 3


def test_a14_equal_words_are_a_duplicate_whatever_was_judged() -> None:
    decision, _ = decided(told("m1", Relation.CONFLICT), fact=drafted(" PREFERS tea"))
    assert (decision.action, decision.memory_id) == (Action.NONE, "m1")


def test_of_two_judgements_about_one_memory_the_first_counts() -> None:
    decision, _ = decided(told("m1", Relation.DUPLICATE), told("m1", Relation.CONFLICT))
    assert decision.reason is Reason.DUPLICATE


@pytest.mark.parametrize(
    "merged",
    ["", " \u200b", "x" * 1001, "Prefers\0 tea", "Prefers tea, key sk-abcdefghijklmnopqrstuvwx"],
)
def test_an_update_that_cannot_be_used_is_none(merged: str) -> None:
    decision, warnings = decided(told("m1", Relation.UPDATE, merged))
    assert (decision.action, decision.reason) == (Action.ADD, Reason.NEW)
    assert list(warnings) == ["invalid_update"]
    assert decision.candidates[0].relation is Relation.UNRELATED


def test_an_update_that_adds_nothing_is_a_duplicate() -> None:
    decision, warnings = decided(told("m1", Relation.UPDATE, "prefers  TEA"))
    assert (decision.action, decision.reason, decision.memory_id) == (
        Action.NONE,
        Reason.DUPLICATE,
        "m1",
    )
    assert not warnings


def test_a15_an_update_changes_the_words_and_nothing_else() -> None:
    before = replace(
        preference("m1", "Prefers tea", title="Drinks", importance=0.9, confidence=0.8),
        metadata={"k": "v"},
        event_ids=("e1",),
        conversation_id="c0",
        version=4,
    )
    fact = drafted("Prefers tea, hot", confidence=0.95, importance=0.99)
    after = updated(before, "Prefers tea, hot", fact)
    changed = {
        field.name
        for field in fields(Memory)
        if getattr(before, field.name) != getattr(after, field.name)
    }
    assert changed == {"content", "normalized_content", "content_hash", "update_time", "version"}
    assert after.content_hash == content_hash(MemoryType.PREFERENCE, "Prefers tea, hot")
    assert (after.update_time, after.version) == (NOW, 5)


def test_an_update_renews_a_memory_as_saying_it_again_does() -> None:
    before = preference("m1", "Prefers tea", expire_time=NOW, title="Prefers tea")
    fact = replace(
        drafted("x", is_explicit=True, sensitivity_level=1), expire_time=NOW + timedelta(days=9)
    )
    after = updated(before, "Prefers tea, hot", fact)
    assert (after.expire_time, after.is_explicit) == (NOW + timedelta(days=9), True)
    assert (after.sensitivity_level, after.title) == (1, "Prefers tea, hot")


EXPLICIT = preference("m1", "Prefers tea", is_explicit=True)


def test_an_implicit_fact_never_supersedes_an_explicit_memory_nor_contradicts_it() -> None:
    decision, _ = decided(
        told("m1", Relation.CONFLICT),
        told("m2", Relation.CONFLICT),
        offered=(EXPLICIT, MILK),
    )
    assert (decision.action, decision.reason) == (Action.NONE, Reason.CONFLICT)
    assert (decision.memory_id, decision.superseded_ids) == ("", ())
    assert decision.fact == replace(drafted("Prefers coffee"), memory_id="")
    decision, _ = decided(
        told("m1", Relation.CONFLICT),
        told("m2", Relation.UPDATE, "Prefers milk, cold"),
        offered=(EXPLICIT, MILK),
    )
    assert decision.reason is Reason.CONFLICT


def test_an_implicit_update_of_an_explicit_memory_stands_beside_it() -> None:
    decision, _ = decided(told("m1", Relation.UPDATE, "Prefers tea, hot"), offered=(EXPLICIT,))
    assert (decision.action, decision.reason) == (Action.ADD, Reason.NEW)
    decision, _ = decided(
        told("m1", Relation.UPDATE, "Prefers tea, hot"),
        told("m2", Relation.UPDATE, "Prefers tea, very hot"),
        offered=(EXPLICIT, MILK),
    )
    assert (decision.action, decision.memory_id) == (Action.UPDATE, "m2")


def test_an_explicit_fact_changes_an_explicit_memory() -> None:
    fact = drafted("Prefers coffee", is_explicit=True)
    decision, _ = decided(told("m1", Relation.CONFLICT), offered=(EXPLICIT,), fact=fact)
    assert decision.superseded_ids == ("m1",)
    decision, _ = decided(
        told("m1", Relation.UPDATE, "Prefers tea, hot"), offered=(EXPLICIT,), fact=fact
    )
    assert decision.memory_id == "m1"


def test_a_fact_that_is_there_word_for_word_is_decided_without_candidates() -> None:
    decision = same_hash(drafted("Prefers tea"), TEA)
    assert (decision.action, decision.reason, decision.memory_id) == (
        Action.NONE,
        Reason.SAME_HASH,
        "m1",
    )


@pytest.mark.parametrize(
    ("row", "comparable"),
    [
        ({}, True),
        ({"memory_type": MemoryType.CONSTRAINT}, True),
        ({"sensitivity_level": 2, "is_explicit": True}, True),
        ({"expire_time": NOW - timedelta(days=1)}, True),
        ({"memory_type": MemoryType.FACT}, False),
        ({"memory_type": MemoryType.UNKNOWN}, False),
        ({"status": MemoryStatus.SUPERSEDED}, False),
        ({"status": MemoryStatus.ARCHIVED}, False),
        ({"is_verbatim": True}, False),
        ({"assistant_id": "a1"}, False),
        ({"run_id": "r1"}, False),
        ({"user_id": "u2"}, False),
    ],
)
def test_a_fact_is_compared_within_its_scope_and_kind(
    row: dict[str, Any], *, comparable: bool
) -> None:
    assert is_comparable(drafted(), preference("m1", "x", **row)) is comparable


IDS = [f"m{number}" for number in range(4)]
ROWS = st.lists(st.sampled_from(IDS), unique=True).flatmap(
    lambda ids: st.tuples(
        *(
            st.builds(
                preference,
                st.just(one),
                st.sampled_from(["Prefers tea", "Prefers milk", "Prefers coffee"]),
                is_explicit=st.booleans(),
            )
            for one in ids
        )
    )
)
JUDGEMENTS = st.lists(
    st.builds(
        Judgement,
        memory_id=st.sampled_from([*IDS, "nobody"]),
        relation=st.sampled_from(Relation),
        merged=st.sampled_from(["", "Prefers tea", "Prefers tea and coffee"]),
    )
)


@given(rows=ROWS, judgements=JUDGEMENTS, explicit=st.booleans())
def test_whatever_is_judged_a_decision_keeps_its_promises(
    rows: Sequence[Memory], judgements: Sequence[Judgement], *, explicit: bool
) -> None:
    fact = drafted("Prefers coffee", is_explicit=explicit)
    decision, _ = decided(*judgements, offered=rows, fact=fact)
    by_id = {row.memory_id: row for row in rows}
    changed = set(decision.superseded_ids)
    if decision.action is Action.UPDATE:
        changed.add(decision.memory_id)
        assert decision.fact.memory_id == decision.memory_id
        assert decision.fact.content
    assert changed <= by_id.keys()
    assert explicit or not any(by_id[one].is_explicit for one in changed)
    assert (decision.action is Action.ADD) == (decision.memory_id == fact.memory_id)
    assert decision.action is Action.ADD or not decision.superseded_ids
    assert [one.memory_id for one in decision.candidates] == [row.memory_id for row in rows]
    relations = {one.memory_id: one.relation for one in decision.candidates}
    if Relation.DUPLICATE in relations.values():
        assert decision.reason is Reason.DUPLICATE
    left = by_id.keys() - set(decision.superseded_ids)
    if decision.action is Action.ADD:
        assert not [one for one in left if relations[one] is Relation.CONFLICT]
