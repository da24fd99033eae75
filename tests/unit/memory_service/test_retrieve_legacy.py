"""Legacy retrieval: the index's order, else the best rows of SQL by the older formula."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.model import MemoryStatus, MemoryType, Scope, UserSettings
from memory_service.domain.recall import Answer, DropReason, Leg, LegState, Mode
from tests.builders.memories import memory
from tests.builders.retrieving import QUICK, Scene, ids, leg

CONSTRAINT, PREFERENCE = MemoryType.CONSTRAINT, MemoryType.PREFERENCE
ASKED = "where to"


def axis(*values: float) -> list[float]:
    return [*values, *[0.0] * (64 - len(values))]


async def numbered(count: int = 8, **more: object) -> Scene:
    """Rows m00, m01, … ever further from the question."""
    scene = Scene(**more)  # type: ignore[arg-type]
    rows = [memory(f"m{n:02}", f"Place {n}") for n in range(count)]
    scene.embedder.table = {
        ASKED: axis(1),
        **{row.content: axis(1, n / 4) for n, row in enumerate(rows)},
    }
    await scene.known(*rows)
    return scene


async def ask(scene: Scene, text: str = ASKED, **more: object) -> Answer:
    answer = await scene.ask(text, mode=Mode.LEGACY, **more)  # type: ignore[arg-type]
    counts = answer.stage_counts
    assert counts["allowed"] - counts["returned"] == len(answer.dropped)
    return answer


async def test_rows_come_in_the_order_of_the_index_five_of_them() -> None:
    for scene in (
        await numbered(),
        await numbered(without_index=True),
        await numbered(settings=replace(QUICK, exact=True)),
    ):
        answer = await ask(scene)
        assert ids(answer) == ["m00", "m01", "m02", "m03", "m04"]
        scores = [item.score for item in answer.items]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] == pytest.approx(1.0)
        assert all(item.score_parts == {"relevance": item.score} for item in answer.items)
        assert leg(answer, Leg.SEMANTIC).candidates == 8
        assert leg(answer, Leg.PINNED).state is LegState.SKIPPED
        assert leg(answer, Leg.KEYWORD).state is LegState.SKIPPED
        assert {one.reason for one in answer.dropped} == {DropReason.LIMIT}
        assert not answer.degraded


async def test_a_limit_is_kept_up_to_twenty() -> None:
    scene = await numbered(30)
    assert len(ids(await ask(scene, limit=2))) == 2
    assert len(ids(await ask(scene, limit=25))) == 20


async def test_a_constraint_has_no_place_of_its_own_here() -> None:
    scene = await numbered()
    await scene.known(memory("c1", memory_type=CONSTRAINT))
    assert "c1" not in ids(await ask(scene))


async def test_no_row_that_is_gone_or_gated_comes_from_the_index() -> None:
    scene = await numbered()
    rows = scene.store.tables.memories
    scene.store_rows(
        replace(rows["m00"], status=MemoryStatus.DELETED), replace(rows["m01"], sensitivity_level=1)
    )
    assert ids(await ask(scene))[0] == "m02"
    other = Scope(user_id="u2")
    scene.index.rows["m03"] = (replace(rows["m03"], user_id="u2"), scene.index.rows["m03"][1])
    assert ids(await ask(scene, scope=other)) == []


async def test_equal_rows_come_once() -> None:
    scene = await numbered(3)
    scene.store_rows(memory("m50", "place 0", assistant_id="a"))
    answer = await ask(scene)
    assert len([one for one in ids(answer) if one in {"m00", "m50"}]) == 1
    assert [one.reason for one in answer.dropped] == [DropReason.DUPLICATE_HASH]


async def test_min_relevance_and_tokens_hold_here_too() -> None:
    scene = await numbered()
    assert ids(await ask(scene, min_relevance=0.95)) == ["m00", "m01"]
    assert len(ids(await ask(scene, token_budget=4))) == 2


@pytest.mark.parametrize("cause", ["unavailable", "timeout"])
async def test_without_the_index_the_best_rows_of_sql_answer(cause: str) -> None:
    scene = Scene()
    await scene.known(
        memory("explicit", is_explicit=True, importance=0.1),
        memory("rule", memory_type=CONSTRAINT, importance=0.9),
        memory("liked", memory_type=PREFERENCE, importance=0.9),
        memory("old", importance=0.9, age=timedelta(days=400)),
    )
    scene.index.down = cause
    answer = await ask(scene)
    assert ids(answer) == ["rule", "liked", "old", "explicit"]
    assert answer.degraded
    assert leg(answer, Leg.SEMANTIC).state is LegState.FAILED
    assert leg(answer, Leg.SEMANTIC).reason == cause
    assert leg(answer, Leg.PINNED).candidates == 4
    assert answer.items[0].score == pytest.approx(0.35 * 0.9 + 0.30 * 0.6 + 0.20 + 0.12)


async def test_without_the_embedder_too() -> None:
    scene = await numbered()
    scene.embedder.down = "breaker_open"
    answer = await ask(scene)
    assert len(ids(answer)) == 5
    assert leg(answer, Leg.SEMANTIC).reason == "breaker_open"
    assert answer.degraded


async def test_an_index_that_finds_nothing_is_no_failure_but_sql_answers() -> None:
    scene = Scene()
    scene.store_rows(memory("m1"), embedded=False)
    scene.embedder.down = ""
    scene.store.tables.notes.clear()  # told, but not there
    answer = await ask(scene)
    assert ids(answer) == ["m1"]
    assert leg(answer, Leg.SEMANTIC).state is LegState.OK
    assert not answer.degraded


async def test_exact_mode_without_any_embedding_falls_back_to_sql() -> None:
    scene = Scene(without_index=True)
    scene.store_rows(memory("m1"), embedded=False)
    assert ids(await ask(scene)) == ["m1"]


async def test_a_blank_query_gives_the_best_rows() -> None:
    scene = await numbered()
    answer = await ask(scene, " ")
    assert ids(answer) == ["m07", "m06", "m05", "m04", "m03"]
    assert leg(answer, Leg.SEMANTIC).reason == "blank_query"
    assert not answer.degraded
    assert scene.embedder.queries == []


async def test_at_most_three_times_the_limit_and_sixty_rows_are_read() -> None:
    scene = await numbered(70)
    assert (await ask(scene, "", limit=4)).stage_counts["merged"] == 12
    assert (await ask(scene, "", limit=20)).stage_counts["merged"] == 60


async def test_with_memory_off_nothing_comes() -> None:
    scene = await numbered()
    scene.store.seed("u1", settings=UserSettings(memory_enabled=False))
    assert ids(await ask(scene)) == []
    assert ids(await ask(scene, "")) == []
