"""Hybrid retrieval: what is found, by which leg, and what the answer says about it."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.bank import BANK
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    UserSettings,
)
from memory_service.domain.recall import Answer, Cut, DropReason, Leg, LegState, Mode, TypeBudgets
from tests.builders.memories import memory
from tests.builders.retrieving import QUICK, Scene, ids, leg

CONSTRAINT, PREFERENCE = MemoryType.CONSTRAINT, MemoryType.PREFERENCE
PEANUTS = memory("m1", "User is allergic to peanuts.")
TEA = memory("m2", "User likes green tea.")


def counted(answer: Answer) -> None:
    """Every answer's numbers add up."""
    counts = answer.stage_counts
    assert counts["allowed"] - counts["returned"] == len(answer.dropped)
    assert counts["merged"] >= counts["allowed"] >= counts["deduplicated"] >= counts["returned"]
    assert counts["returned"] == len(answer.items)
    assert answer.pinned_total >= answer.pinned_returned


def axis(*values: float) -> list[float]:
    return [*values, *[0.0] * (64 - len(values))]


# ---------------------------------------------------------------- what is found


async def test_a_memory_is_found_by_its_words_and_its_meaning() -> None:
    scene = Scene()
    await scene.known(PEANUTS, TEA)
    answer = await scene.ask("peanut allergies")
    assert ids(answer)[0] == "m1"
    assert not answer.degraded
    assert answer.items[0].candidate.legs == {Leg.SEMANTIC, Leg.KEYWORD}
    assert [source.leg for source in answer.sources] == list(Leg)
    assert [source.state for source in answer.sources] == [LegState.OK] * 3
    assert all(not source.reason for source in answer.sources)
    counted(answer)


async def test_a_memory_of_the_same_meaning_is_found_without_a_common_word() -> None:
    scene = Scene()
    scene.embedder.table = {
        "User is allergic to peanuts.": axis(1),
        "what must I not eat": axis(0.9, 0.4359),
    }
    await scene.known(PEANUTS)
    answer = await scene.ask("what must I not eat")
    assert ids(answer) == ["m1"]
    assert answer.items[0].candidate.legs == {Leg.SEMANTIC}
    assert leg(answer, Leg.SEMANTIC).candidates == 1
    assert leg(answer, Leg.KEYWORD).candidates == 0


async def test_constraints_come_whatever_is_asked() -> None:
    scene = Scene()
    await scene.known(
        memory("c1", "Never mention the war.", memory_type=CONSTRAINT),
        memory("p1", "Likes jazz.", memory_type=PREFERENCE, confidence=0.8),
        memory("p2", "Perhaps likes rock.", memory_type=PREFERENCE, confidence=0.79),
        TEA,
    )
    answer = await scene.ask("green tea")
    assert {"c1", "p1", "m2"} <= set(ids(answer))
    assert answer.pinned_total == answer.pinned_returned == 2
    assert leg(answer, Leg.PINNED).candidates == 2
    counted(answer)


async def test_a_blank_query_gives_the_pinned_rows_and_asks_nobody() -> None:
    scene = Scene()
    await scene.known(memory("c1", memory_type=CONSTRAINT), TEA)
    for text in ("", "  \n\u3000"):
        answer = await scene.ask(text)
        assert ids(answer) == ["c1"]
        assert leg(answer, Leg.SEMANTIC).state is LegState.SKIPPED
        assert leg(answer, Leg.KEYWORD).reason == "blank_query"
        assert not answer.degraded
        counted(answer)
    assert scene.embedder.queries == []
    assert scene.index.calls["search"] == 0


@pytest.mark.parametrize("text", ["ok thanks!", "谢谢你", "👍"])
async def test_small_talk_gives_the_pinned_rows_and_asks_nobody(text: str) -> None:
    scene = Scene()
    await scene.known(memory("c1", memory_type=CONSTRAINT), TEA)
    answer = await scene.ask(text)
    assert ids(answer) == ["c1"]
    assert leg(answer, Leg.SEMANTIC).reason == leg(answer, Leg.KEYWORD).reason == "small_talk"
    assert scene.embedder.queries == []


async def test_an_unknown_user_has_nothing_and_that_is_no_failure() -> None:
    scene = Scene()
    await scene.known(TEA)
    answer = await scene.ask("green tea", scope=Scope(user_id="stranger"))
    assert ids(answer) == []
    assert not answer.degraded
    assert answer.revision == 0
    assert [source.state for source in answer.sources] == [LegState.OK] * 3
    counted(answer)


async def test_a_healthy_search_without_hits_is_no_failure() -> None:
    scene = Scene()
    scene.embedder.table = {"zzz qqq": axis(1), "User likes green tea.": axis(-1)}
    await scene.known(TEA)
    answer = await scene.ask("zzz qqq")
    assert ids(answer) == []
    assert not answer.degraded
    assert leg(answer, Leg.SEMANTIC).state is LegState.OK
    assert scene.store.calls["rows"] == 1


async def test_a_row_that_both_legs_brought_is_counted_as_a_double_and_stays_pinned() -> None:
    scene = Scene()
    await scene.known(memory("c1", "No peanuts, ever.", memory_type=CONSTRAINT))
    answer = await scene.ask("peanuts", cut=Cut.STRICT, min_relevance=1.0)
    assert ids(answer) == ["c1"]
    assert answer.items[0].candidate.legs == set(Leg)
    assert answer.items[0].candidate.relevance > 0
    assert [one.reason for one in answer.dropped] == [DropReason.DUPLICATE_ID]
    assert answer.pinned_total == answer.pinned_returned == 1
    counted(answer)


async def test_every_row_left_out_has_a_reason() -> None:
    scene = Scene()
    rows = [memory(f"f{n}", f"Green tea number {n}.") for n in range(12)]
    await scene.known(
        *rows,
        memory("c1", memory_type=CONSTRAINT),
        memory("f90", "GREEN tea number 1.", assistant_id="a"),
    )
    answer = await scene.ask("green tea", limit=4, token_budget=15)
    reasons = Counter(one.reason for one in answer.dropped)
    assert reasons[DropReason.DUPLICATE_HASH] == 1
    assert reasons[DropReason.TYPE_BUDGET] == 12 - 5
    assert reasons[DropReason.LIMIT] == 2
    assert reasons[DropReason.TOKEN_BUDGET] > 0
    assert "c1" in ids(answer)
    counted(answer)


async def test_own_budgets_let_fifty_facts_through() -> None:
    scene = Scene()
    await scene.known(*[memory(f"f{n:02}", f"Green tea number {n}.") for n in range(60)])
    answer = await scene.ask("green tea", budgets=TypeBudgets(fact=50), limit=50)
    assert len(answer.items) == 50


async def test_the_preference_budget_bounds_the_pinned_preferences() -> None:
    scene = Scene()
    liked = [
        memory(f"p{n}", memory_type=PREFERENCE, confidence=0.9, importance=n / 10) for n in range(8)
    ]
    await scene.known(*liked)
    assert ids(await scene.ask("")) == ["p7", "p6", "p5", "p4", "p3"]
    assert len(ids(await scene.ask("", budgets=TypeBudgets(preference=7)))) == 7
    assert ids(await scene.ask("", budgets=TypeBudgets(preference=0))) == []


async def test_explain_gives_the_parts_of_relevance_and_of_the_cut() -> None:
    scene = Scene()
    await scene.known(PEANUTS, TEA)
    plain = await scene.ask("peanut allergies", cut=Cut.TIGHT)
    assert not plain.items[0].candidate.relevance_parts
    answer = await scene.ask("peanut allergies", cut=Cut.TIGHT, explain=True)
    parts = answer.items[0].candidate.relevance_parts
    assert {"keywords", "vector", "coverage", "weight", "own", "near", "peak", "name"} <= set(parts)
    assert {"G", "x", "y", "theta"} <= set(parts)


async def test_the_cut_holds_back_what_does_not_fit_and_counts_it() -> None:
    scene = Scene()
    scene.embedder.table = {
        "What is my allergy?": axis(1),
        "User is allergic to peanuts.": axis(0.99, 0.1),
        "User has a question about what is next.": axis(0.05, 1),
    }
    await scene.known(PEANUTS, memory("m3", "User has a question about what is next."))
    tight = await scene.ask("What is my allergy?", cut=Cut.TIGHT)
    assert ids(tight) == ["m1"]
    assert {one.reason for one in tight.dropped} <= {DropReason.CUT}
    counted(tight)


async def test_a_gated_answer_is_empty_and_says_what_was_cut() -> None:
    scene = Scene()
    text = "convert 5 miles to tea"
    scene.embedder.table = {message: axis(1, n / 10) for n, message in enumerate(BANK)}
    scene.embedder.table |= {text: axis(1, 0.2), "User likes green tea.": axis(0, 0, 1)}
    await scene.known(TEA)
    assert ids(await scene.ask(text)) == ["m2"]
    answer = await scene.ask(text, cut=Cut.GATE)
    assert ids(answer) == []
    assert [one.reason for one in answer.dropped] == [DropReason.CUT]
    assert not answer.degraded
    counted(answer)


async def test_min_relevance_drops_what_is_below_it() -> None:
    scene = Scene()
    await scene.known(PEANUTS, memory("c1", "Be brief.", memory_type=CONSTRAINT))
    answer = await scene.ask("peanut", min_relevance=0.999)
    assert ids(answer) == ["c1"]
    assert {one.reason for one in answer.dropped} == {
        DropReason.BELOW_MIN_RELEVANCE,
        *({DropReason.DUPLICATE_ID} & {one.reason for one in answer.dropped}),
    }


async def test_a_long_query_is_embedded_in_part_and_that_is_noted() -> None:
    scene = Scene()
    await scene.known(TEA)
    answer = await scene.ask("茶" * 3000 + " green tea")
    assert scene.embedder.queries == ["茶" * 2730]
    assert leg(answer, Leg.SEMANTIC).state is LegState.OK
    assert leg(answer, Leg.SEMANTIC).reason == "query_cut"
    assert ids(answer) == ["m2"]
    assert not answer.degraded


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.LEGACY])
async def test_a_long_query_is_noted_also_where_it_could_not_be_embedded(mode: Mode) -> None:
    scene = Scene()
    await scene.known(TEA)
    scene.embedder.down = "unavailable"
    answer = await scene.ask("茶" * 3000 + " green tea", mode=mode)
    assert leg(answer, Leg.SEMANTIC).state is LegState.FAILED
    assert leg(answer, Leg.SEMANTIC).reason == "unavailable,query_cut"


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.LEGACY])
async def test_a_long_query_is_noted_also_where_the_index_failed(mode: Mode) -> None:
    scene = Scene()
    await scene.known(TEA)
    scene.index.down = "unavailable"
    answer = await scene.ask("茶" * 3000 + " green tea", mode=mode)
    assert leg(answer, Leg.SEMANTIC).reason == "unavailable,query_cut"


async def test_a_lexical_embedder_is_noted() -> None:
    scene = Scene()
    scene.embedder.lexical = True
    await scene.known(TEA)
    answer = await scene.ask("green tea")
    assert leg(answer, Leg.SEMANTIC).reason == "lexical"
    assert not answer.degraded


# ---------------------------------------------------------------- whose, and which


async def test_no_leg_ever_brings_another_users_row() -> None:
    scene = Scene()
    await scene.known(
        memory("x1", "No peanuts.", user_id="u2", memory_type=CONSTRAINT),
        memory("x2", "User is allergic to peanuts.", user_id="u2"),
        TEA,
    )
    theirs = scene.store.tables.memories["x2"]
    stray = replace(theirs, user_id="u1")  # the index believes that x2 is u1's
    scene.index.rows["x2"] = (stray, scene.stored_row(stray).vector)  # type: ignore[assignment]
    for down in ("", "unavailable"):
        scene.index.down = down
        answer = await scene.ask("allergic to peanuts")
        assert set(ids(answer)) <= {"m2"}
        counted(answer)
    scene.index.down = ""
    answer = await scene.ask("peanuts or green tea")
    assert answer.stage_counts == {"merged": 2, "allowed": 1, "deduplicated": 1, "returned": 1}


@pytest.mark.parametrize("status", sorted(set(MemoryStatus) - {MemoryStatus.ACTIVE}))
async def test_a_row_that_is_not_active_never_comes_back_from_the_index(
    status: MemoryStatus,
) -> None:
    scene = Scene()
    await scene.known(PEANUTS, TEA)
    assert "m1" in ids(await scene.ask("peanuts"))
    scene.store_rows(replace(PEANUTS, status=status))
    assert "m1" in scene.index.rows
    answer = await scene.ask("peanuts")
    assert "m1" not in ids(answer)
    counted(answer)


async def test_deleted_rows_do_not_take_the_places_of_live_ones() -> None:
    scene = Scene()
    gone = [memory(f"d{n:02}", f"Tea order {n}") for n in range(30)]
    await scene.known(*gone, memory("live", "Tea order of today"))
    scene.store_rows(*[replace(row, status=MemoryStatus.DELETED) for row in gone])
    answer = await scene.ask("tea order", limit=5)
    assert ids(answer) == ["live"]


async def test_a_memory_is_not_recalled_from_its_expiry_on() -> None:
    scene = Scene()
    await scene.known(replace(TEA, expire_time=scene.clock() + timedelta(hours=1)))
    assert ids(await scene.ask("green tea")) == ["m2"]
    scene.clock.advance(3600)
    assert ids(await scene.ask("green tea")) == []


async def test_only_the_wanted_types_come_pinned_ones_too() -> None:
    scene = Scene()
    rows = [
        memory(f"{kind}{n}", f"Green tea {kind} {n}", memory_type=kind, confidence=0.9)
        for kind in (CONSTRAINT, PREFERENCE, MemoryType.FACT)
        for n in range(3)
    ]
    await scene.known(*rows)
    answer = await scene.ask("green tea", memory_types=frozenset({PREFERENCE}))
    assert set(ids(answer)) == {"preference0", "preference1", "preference2"}
    none = UserSettings(disabled_types=frozenset({PREFERENCE}))
    scene.store.seed("u1", settings=none)
    searches = scene.index.calls["search"]
    assert ids(await scene.ask("green tea", memory_types=frozenset({PREFERENCE}))) == []
    assert scene.index.calls["search"] == searches


async def test_with_memory_off_nothing_is_recalled_or_searched() -> None:
    scene = Scene()
    await scene.known(
        memory("c1", memory_type=CONSTRAINT), TEA, settings=UserSettings(memory_enabled=False)
    )
    answer = await scene.ask("green tea")
    assert ids(answer) == []
    assert leg(answer, Leg.SEMANTIC).state is LegState.SKIPPED
    assert leg(answer, Leg.KEYWORD).reason == "settings"
    assert not answer.degraded
    assert scene.index.calls["search"] == 0
    assert answer.revision == 1


async def test_settings_gate_the_search_as_well() -> None:
    scene = Scene()
    secret = memory("s1", "Green tea for the surgery.", sensitivity_level=1)
    said = memory("e1", "Green tea, please remember.", is_explicit=True)
    await scene.known(secret, said, TEA)
    assert set(ids(await scene.ask("green tea"))) == {"e1", "m2"}
    scene.store.seed("u1", settings=UserSettings(sensitive_memory_enabled=True))
    assert set(ids(await scene.ask("green tea"))) == {"s1", "e1", "m2"}
    scene.store.seed("u1", settings=UserSettings(implicit_memory_enabled=False))
    assert set(ids(await scene.ask("green tea"))) == {"e1"}


async def test_a_scope_hides_rows_of_other_assistants_in_every_leg() -> None:
    scene = Scene()
    await scene.known(
        memory("a", "Green tea a", assistant_id="a", memory_type=CONSTRAINT),
        memory("b", "Green tea b", assistant_id="b"),
        memory("all", "Green tea"),
    )
    answer = await scene.ask("green tea", scope=Scope(user_id="u1", assistant_id="b"))
    assert set(ids(answer)) == {"b", "all"}


async def test_the_conversation_is_a_bonus() -> None:
    scene = Scene()
    scene.embedder.down = "unavailable"
    await scene.known(memory("m1", "Green tea", conversation_id="c1"), memory("m2", "Green Tea."))
    assert ids(await scene.ask("green tea")) == ["m2", "m1"]
    assert ids(await scene.ask("green tea", conversation_id="c1")) == ["m1", "m2"]


async def test_a_relevance_weight_of_zero_is_the_plan() -> None:
    scene = Scene(settings=replace(QUICK, weights=replace(QUICK.weights, relevance=0.0)))
    await scene.known(replace(PEANUTS, importance=0.1), replace(TEA, importance=0.9))
    answer = await scene.ask("allergic to peanuts, likes tea")
    assert ids(answer) == ["m2", "m1"]
    assert answer.items[0].score_parts["relevance"] == 0


# ---------------------------------------------------------------- what the index knows


async def test_an_answer_tells_what_the_index_knows_of_a_row() -> None:
    scene = Scene()
    scene.embedder.table = {"Green tea unindexable": axis(0)}

    def states(answer: Answer) -> dict[str, IndexState]:
        return {i.candidate.memory.memory_id: i.candidate.memory.index_state for i in answer.items}

    bad = memory("m3", "Green tea unindexable")
    scene.store_rows(TEA, bad)
    assert states(await scene.ask("green tea")) == {
        "m2": IndexState.PENDING,
        "m3": IndexState.PENDING,
    }
    await scene.tell_index()
    assert states(await scene.ask("green tea")) == {
        "m2": IndexState.SYNCED,
        "m3": IndexState.FAILED,
    }


async def test_recalled_rows_are_touched_without_a_new_revision() -> None:
    scene = Scene()
    await scene.known(TEA, PEANUTS)
    answer = await scene.ask("green tea", budgets=TypeBudgets(fact=1))
    await scene.retriever.close()
    rows = scene.store.tables.memories
    assert rows["m2"].last_access_time == scene.clock()
    assert rows["m1"].last_access_time is None
    assert rows["m2"].revision == answer.revision == scene.store.tables.state("u1").revision


def _facts(count: int) -> list[Memory]:
    return [memory(f"f{n:03}", f"Tea fact number {n}") for n in range(count)]


async def test_statistics_are_over_all_rows_whatever_the_gates_hide() -> None:
    scene = Scene()
    await scene.known(*_facts(3), memory("c9", "Tea", memory_type=CONSTRAINT))
    everything = await scene.ask("tea number 2", explain=True)
    only_facts = await scene.ask(
        "tea number 2", explain=True, memory_types=frozenset({MemoryType.FACT})
    )

    def keywords(answer: Answer) -> float:
        (item,) = [i for i in answer.items if i.candidate.memory.memory_id == "f002"]
        return item.candidate.relevance_parts["keywords"]

    assert keywords(everything) == keywords(only_facts)
