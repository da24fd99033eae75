"""What an extractor's facts would become, and which are dropped before anything is compared."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory_service.domain.drafts import draft, drafts, dropped
from memory_service.domain.ingest import Action, Extraction, Fact, Intent, Reason
from memory_service.domain.model import MemoryStatus, MemoryType, UserSettings
from memory_service.domain.text import content_hash
from tests.builders.facts import drafted, fact
from tests.builders.memories import NOW
from tests.builders.turns import turn

KEY = "My key is sk-abcdefghijklmnopqrstuvwx"


def reasons(
    *facts: Fact,
    settings: UserSettings | None = None,
    intent: Intent = Intent.PREFERENCE,
) -> list[Reason | None]:
    extraction = Extraction(intent=intent, facts=facts)
    memories = [draft(one, turn(), f"n{place}", NOW) for place, one in enumerate(facts)]
    return [one.refusal for one in drafts(extraction, memories, settings or UserSettings())]


def test_a_draft_says_where_it_comes_from_and_what_the_extractor_read() -> None:
    given = Fact(
        memory_type=MemoryType.CONSTRAINT,
        content="  请用中文\n回答 ",
        title="语言",
        confidence=0.0,
        importance=0.0,
        sensitivity_level=2,
        is_explicit=True,
        expire_time=NOW + timedelta(days=1),
    )
    made = draft(given, turn(assistant_id="a1", run_id="r1"), "n1", NOW)
    assert (made.user_id, made.conversation_id, made.turn_id) == ("u1", "c1", "t1")
    assert (made.assistant_id, made.run_id, made.memory_id) == ("a1", "r1", "n1")
    assert (made.content, made.title) == ("  请用中文\n回答 ", "语言")
    assert made.content_hash == content_hash(MemoryType.CONSTRAINT, "请用中文 回答")
    assert (made.confidence, made.importance, made.sensitivity_level) == (0.0, 0.0, 2)
    assert (made.is_explicit, made.expire_time) == (True, NOW + timedelta(days=1))
    assert (made.status, made.create_time, made.update_time) == (MemoryStatus.ACTIVE, NOW, NOW)


@pytest.mark.parametrize(
    ("memory_type", "importance", "days"),
    [
        (MemoryType.CONSTRAINT, 0.95, None),
        (MemoryType.PREFERENCE, 0.85, None),
        (MemoryType.FACT, 0.6, 180),
        (MemoryType.TODO_HINT, 0.6, 14),
    ],
)
def test_what_the_extractor_left_open_takes_its_default(
    memory_type: MemoryType, importance: float, days: int | None
) -> None:
    made = drafted(memory_type=memory_type)
    assert (made.confidence, made.importance) == (0.6, importance)
    assert made.expire_time == (None if days is None else NOW + timedelta(days=days))
    assert made.title == "I like tea"


@pytest.mark.parametrize(("title", "kept"), [("t" * 64, "t" * 64), ("t" * 65, "I like tea")])
def test_a_title_that_is_too_long_is_not_cut_but_made_of_the_content(title: str, kept: str) -> None:
    assert drafted(title=title).title == kept


def test_only_nul_is_taken_out() -> None:
    assert drafted("I like\0 tea\u200b ", title="T\0").content == "I like tea\u200b "
    assert drafted(title="T\0").title == "T"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, None),
        ({"content": "x" * 1000}, None),
        ({"content": "x" * 1001}, Reason.INVALID_FACT),
        ({"content": "茶" * 1000}, None),
        ({"content": " \u200b\n"}, Reason.INVALID_FACT),
        ({"memory_type": MemoryType.UNKNOWN}, Reason.INVALID_FACT),
        ({"confidence": 1.5}, Reason.INVALID_FACT),
        ({"confidence": math.nan}, Reason.INVALID_FACT),
        ({"importance": -0.1}, Reason.INVALID_FACT),
        ({"sensitivity_level": 3}, Reason.INVALID_FACT),
        ({"confidence": 0.5}, None),
        ({"confidence": 0.49}, Reason.LOW_CONFIDENCE),
        ({"confidence": 0.0}, Reason.LOW_CONFIDENCE),
        ({"sensitivity_level": 1}, Reason.SETTINGS),
        ({"content": KEY}, Reason.SECRET),
        ({"title": KEY}, Reason.SECRET),
        ({"content": KEY, "confidence": 0.1, "sensitivity_level": 7}, Reason.SECRET),
    ],
)
def test_a_fact_is_dropped_for_a_reason(values: dict[str, Any], reason: Reason | None) -> None:
    assert reasons(replace(fact(), **values)) == [reason]


def test_what_the_settings_forbid_is_dropped() -> None:
    off = UserSettings(implicit_memory_enabled=False)
    assert reasons(fact(), fact(is_explicit=True), settings=off) == [Reason.SETTINGS, None]
    typed = UserSettings(disabled_types=frozenset({MemoryType.PREFERENCE}))
    assert reasons(fact(), fact(memory_type=MemoryType.FACT), settings=typed) == [
        Reason.SETTINGS,
        None,
    ]
    sensitive = UserSettings(sensitive_memory_enabled=True)
    assert reasons(fact(sensitivity_level=2), settings=sensitive) == [None]


def test_of_too_many_facts_constraints_are_taken_first_and_then_the_first_ones() -> None:
    rule = fact("Never nuts", memory_type=MemoryType.CONSTRAINT)
    dropped_ones = [Reason.TOO_MANY_FACTS, Reason.TOO_MANY_FACTS]
    assert reasons(fact("a"), fact("b"), fact("c"), fact("d"), rule) == [
        None,
        None,
        *dropped_ones,
        None,
    ]


@pytest.mark.parametrize("intent", [Intent.CHITCHAT, Intent.TASK_REQUEST, Intent.KNOWLEDGE_QA])
def test_some_intents_store_nothing(intent: Intent) -> None:
    assert reasons(fact(), fact(KEY), intent=intent) == [Reason.INTENT, Reason.SECRET]


def test_the_first_three_facts_of_a_turn_are_taken_and_dropped_ones_take_no_place() -> None:
    facts = [fact("a", confidence=0.1), *(fact(word) for word in "bcdef")]
    assert reasons(*facts) == [
        Reason.LOW_CONFIDENCE,
        None,
        None,
        None,
        Reason.TOO_MANY_FACTS,
        Reason.TOO_MANY_FACTS,
    ]


@pytest.mark.parametrize("reason", [Reason.SECRET, Reason.SETTINGS, Reason.INVALID_FACT])
def test_of_what_must_not_be_kept_no_word_and_no_hash_is_left(reason: Reason) -> None:
    decision = dropped(drafted(KEY, title="Key", sensitivity_level=1), reason)
    kept = decision.fact
    assert (decision.action, decision.reason, decision.memory_id) == (Action.NONE, reason, "")
    assert (kept.content, kept.title, kept.normalized_content, kept.content_hash) == ("",) * 4
    assert (kept.memory_type, kept.sensitivity_level) == (MemoryType.PREFERENCE, 1)
    assert "sk-" not in repr(decision)


@pytest.mark.parametrize("reason", [Reason.LOW_CONFIDENCE, Reason.INTENT, Reason.TOO_MANY_FACTS])
def test_a_dropped_fact_is_told_as_it_was_read(reason: Reason) -> None:
    assert dropped(drafted(), reason).fact == replace(drafted(), memory_id="")
