"""When a part fails: a weaker source answers in time and the answer says so."""

import asyncio
from dataclasses import replace

import pytest

from memory_service.domain.bank import BANK
from memory_service.domain.errors import RevisionNotReached, StoreUnavailable
from memory_service.domain.model import MemoryType
from memory_service.domain.recall import Cut, Leg, LegState, Mode
from memory_service.ports import PinnedQuery, UserView
from tests.builders.memories import memory
from tests.builders.retrieving import PATIENT, QUICK, Scene, ids, leg

PEANUTS = memory("m1", "User is allergic to peanuts.")
FOOD = memory("m2", "User cannot have groundnut snacks.")
RULE = memory("c1", "Be brief.", memory_type=MemoryType.CONSTRAINT)


def axis(*values: float) -> list[float]:
    return [*values, *[0.0] * (64 - len(values))]


async def scene_of_two(**more: object) -> Scene:
    """FOOD shares only its meaning with the question, PEANUTS only a word."""
    scene = Scene(**more)  # type: ignore[arg-type]
    scene.embedder.table = {
        "which peanuts may I eat": axis(1),
        PEANUTS.content: axis(0, 0, 1),
        FOOD.content: axis(0.9, 0.4359),
    }
    await scene.known(PEANUTS, FOOD, RULE)
    return scene


@pytest.mark.parametrize("cause", ["unavailable", "breaker_open", "reindexing", "timeout"])
async def test_without_the_index_exact_cosines_find_the_same(cause: str) -> None:
    scene = await scene_of_two()
    healthy = await scene.ask("which peanuts may I eat")
    scene.index.down = cause
    answer = await scene.ask("which peanuts may I eat")
    assert ids(answer) == ids(healthy)
    assert {"m1", "m2"} <= set(ids(answer))
    assert [i.score for i in answer.items] == pytest.approx([i.score for i in healthy.items])
    assert answer.degraded
    assert not healthy.degraded
    semantic = leg(answer, Leg.SEMANTIC)
    assert (semantic.state, semantic.reason) == (LegState.DEGRADED, cause)
    assert leg(answer, Leg.KEYWORD).state is LegState.OK


async def test_an_outage_reads_all_embeddings_once_and_not_at_every_question() -> None:
    scene = await scene_of_two()
    scene.index.down = "unavailable"
    await scene.ask("which peanuts may I eat")
    reads = scene.store.calls["rows"]
    await scene.ask("which peanuts may I eat")
    assert scene.store.calls["rows"] == reads
    scene.index.down = ""
    assert not (await scene.ask("which peanuts may I eat")).degraded


async def test_a_silent_index_is_given_up_in_time() -> None:
    scene = await scene_of_two()
    scene.index.hang = True
    answer = await scene.ask("which peanuts may I eat", deadline=1.0)
    assert {"m1", "m2", "c1"} == set(ids(answer))
    assert leg(answer, Leg.SEMANTIC).reason == "timeout"
    assert leg(answer, Leg.SEMANTIC).state is LegState.DEGRADED


@pytest.mark.parametrize("hang", [True, False])
async def test_without_the_embedder_keywords_answer_alone(hang: bool) -> None:  # noqa: FBT001
    scene = await scene_of_two(settings=QUICK if hang else PATIENT)
    scene.embedder.hang, scene.embedder.down = hang, "unavailable"
    answer = await scene.ask("which peanuts may I eat")
    assert set(ids(answer)) == {"m1", "c1"}
    assert answer.degraded
    semantic = leg(answer, Leg.SEMANTIC)
    assert semantic.state is LegState.FAILED
    assert semantic.reason == ("timeout" if hang else "unavailable")
    assert scene.index.calls["search"] == 0


@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf")])
async def test_a_query_vector_without_a_direction_is_no_vector(number: float) -> None:
    scene = await scene_of_two()
    scene.embedder.table["which peanuts may I eat"] = axis(number)
    answer = await scene.ask("which peanuts may I eat")
    assert set(ids(answer)) == {"m1", "c1"}
    assert leg(answer, Leg.SEMANTIC).reason == "no_vector"
    assert answer.degraded


@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf")])
async def test_a_row_vector_without_a_direction_never_outranks_real_hits(number: float) -> None:
    scene = Scene()
    scene.embedder.table = {"what do I eat": axis(1), "Broken.": axis(number), "Bread.": axis(0.9)}
    rows = [memory("bad", "Broken."), memory("good", "Bread.")]
    scene.store_rows(*rows)
    for down in ("", "unavailable"):
        scene.index.down = down
        answer = await scene.ask("what do I eat")
        assert ids(answer) == ["good"]
        assert all(0 <= item.candidate.relevance < 1 for item in answer.items)


async def test_cosines_out_of_range_are_clamped() -> None:
    scene = await scene_of_two()
    search = scene.index.search

    async def beyond(*given: object, **more: object) -> object:
        hits = await search(*given, **more)  # type: ignore[arg-type]
        wild = {"m1": float("nan"), "m2": 1.0000002}
        return [replace(hit, cosine=wild.get(hit.memory_id, -1.5)) for hit in hits]

    scene.index.search = beyond  # type: ignore[method-assign, assignment]
    answer = await scene.ask("which may I eat")
    assert ids(answer)[0] == "m2"
    assert all(0 <= item.candidate.relevance < 1 for item in answer.items)
    legacy = await scene.ask("which may I eat", mode=Mode.LEGACY)
    assert all(0 <= item.score <= 1 for item in legacy.items)


async def test_exact_cosines_are_no_failure_where_they_are_meant() -> None:
    for scene in (
        await scene_of_two(without_index=True),
        await scene_of_two(settings=replace(PATIENT, exact=True)),
    ):
        answer = await scene.ask("which peanuts may I eat")
        assert set(ids(answer)) == {"m1", "m2", "c1"}
        assert leg(answer, Leg.SEMANTIC).state is LegState.OK
        assert not answer.degraded
        assert scene.index.calls["search"] == 0


async def test_exact_mode_follows_changes_and_late_embeddings() -> None:
    scene = await scene_of_two(without_index=True)
    await scene.ask("which peanuts may I eat")
    nuts = memory("m3", "No nuts for them.")
    scene.embedder.table[nuts.content] = axis(0.95, 0.1)
    scene.store_rows(nuts, embedded=False)
    answer = await scene.ask("which peanuts may I eat")
    assert "m3" in ids(answer)
    assert scene.embedder.documents == [nuts.content]
    await scene.ask("which peanuts may I eat")
    assert scene.embedder.documents == [nuts.content]


# ---------------------------------------------------------------- SQL


async def test_nothing_is_answered_without_sql() -> None:
    scene = await scene_of_two()
    scene.store.down = True
    for text in ("which peanuts may I eat", ""):
        for mode in Mode:
            with pytest.raises(StoreUnavailable):
                await scene.ask(text, mode=mode)


async def test_sql_failing_after_the_first_read_is_unavailable_too() -> None:
    scene = await scene_of_two()
    rows = scene.store.rows

    async def failing(*given: object, **more: object) -> object:
        scene.store.down = True
        return await rows(*given, **more)  # type: ignore[arg-type]

    scene.store.rows = failing  # type: ignore[method-assign, assignment]
    with pytest.raises(StoreUnavailable):
        await scene.ask("which peanuts may I eat")


@pytest.mark.parametrize("mode", list(Mode))
async def test_silent_sql_is_unavailable_in_time(mode: Mode) -> None:
    scene = await scene_of_two()
    scene.store.hang = True
    with pytest.raises(StoreUnavailable):
        await scene.ask("which peanuts may I eat", mode=mode, deadline=0.05)


async def test_touching_that_fails_does_not_matter() -> None:
    scene = await scene_of_two()
    await scene.ask("which peanuts may I eat")
    scene.store.down = True
    await scene.retriever.close()
    assert scene.store.tables.memories["m1"].last_access_time is None


# ---------------------------------------------------------------- min_revision


@pytest.mark.parametrize("mode", list(Mode))
async def test_an_answer_waits_for_the_revision_that_the_caller_knows(mode: Mode) -> None:
    scene = await scene_of_two()
    asked = asyncio.create_task(scene.ask("snacks", min_revision=2, mode=mode))
    await asyncio.sleep(0.02)
    assert scene.store.calls["view"] >= 1
    assert not asked.done()
    scene.store_rows(memory("m3", "User likes rice snacks."))
    answer = await asked
    assert answer.revision == 2
    assert "m3" in ids(answer)


async def test_a_revision_that_does_not_come_is_told_as_such() -> None:
    scene = await scene_of_two()
    with pytest.raises(RevisionNotReached):
        await scene.ask("snacks", min_revision=99, deadline=0.5)
    assert scene.store.calls["view"] > 2


# ---------------------------------------------------------------- the embedder's ruler


async def test_a_ruler_that_cannot_be_had_means_no_gate_and_is_tried_again() -> None:
    scene = await scene_of_two(settings=QUICK)
    embed = scene.embedder.embed_queries
    attempts = 0

    async def no_bank(texts: list[str]) -> object:
        nonlocal attempts
        if len(texts) == len(BANK):
            attempts += 1
            scene.embedder.down = "unavailable"
        try:
            return await embed(texts)
        finally:
            scene.embedder.down = ""

    scene.embedder.embed_queries = no_bank  # type: ignore[method-assign, assignment]
    for expected in (1, 2):
        answer = await scene.ask("which peanuts may I eat", cut=Cut.GATE)
        assert {"m1", "m2"} <= set(ids(answer))
        assert attempts == expected
    scene.embedder.embed_queries = embed  # type: ignore[method-assign]
    await scene.ask("which peanuts may I eat", cut=Cut.GATE)
    measured = len(scene.embedder.queries)
    await scene.ask("which peanuts may I eat", cut=Cut.GATE)
    assert len(scene.embedder.queries) == measured + 1


async def test_a_ruler_that_takes_long_does_not_hold_up_the_answer() -> None:
    scene = await scene_of_two(settings=QUICK)
    embed = scene.embedder.embed_queries

    async def slow_bank(texts: list[str]) -> object:
        if len(texts) == len(BANK):
            await asyncio.Event().wait()
        return await embed(texts)

    scene.embedder.embed_queries = slow_bank  # type: ignore[method-assign, assignment]
    answer = await scene.ask("which peanuts may I eat", cut=Cut.GATE)
    assert {"m1", "m2"} <= set(ids(answer))
    await scene.retriever.close()


async def test_sql_that_falls_silent_before_the_revision_comes_is_told_as_behind() -> None:
    scene = await scene_of_two()
    view = scene.store.view

    async def once_then_silent(wanted: PinnedQuery) -> UserView:
        if scene.store.calls["view"]:
            await asyncio.Event().wait()
        return await view(wanted)

    scene.store.view = once_then_silent  # type: ignore[method-assign]
    with pytest.raises(RevisionNotReached):
        await scene.ask("snacks", min_revision=99, deadline=0.1)
