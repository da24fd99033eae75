"""Working sets: kept, followed, rebuilt, let go; and what an answer is without one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.errors import StoreUnavailable
from memory_service.domain.model import Memory, MemoryStatus, MemoryType, Scope
from memory_service.domain.recall import Leg, LegState
from memory_service.domain.text import indexed_text
from memory_service.retrieve import Retriever
from memory_service.retrieve.held import Held
from memory_service.retrieve.settings import until
from tests.builders.memories import memory
from tests.builders.retrieving import QUICK, Scene, ids, leg

RULE = memory("c1", "Be brief.", memory_type=MemoryType.CONSTRAINT)


def facts(count: int, user_id: str = "u1", first: int = 0) -> list[Memory]:
    numbers = range(first, first + count)
    return [memory(f"{user_id}f{n:04}", f"Tea fact number n{n}", user_id=user_id) for n in numbers]


async def test_a_warm_question_reads_one_view_and_searches_once() -> None:
    scene = Scene()
    await scene.known(*facts(5))
    await scene.ask("tea fact n3")
    before = scene.store.calls.copy()
    answer = await scene.ask("tea fact n3")
    assert ids(answer)[0] == "u1f0003"
    more = scene.store.calls - before
    assert {name: count for name, count in more.items() if name != "touch"} == {"view": 1}


async def test_few_changes_are_followed_and_many_mean_a_new_one() -> None:
    scene = Scene()
    await scene.known(*facts(5))
    await scene.ask("tea")
    scene.store_rows(*facts(5, first=5))
    assert ids(await scene.ask("n7"))[0] == "u1f0007"
    assert scene.store.calls["rows"] == 1
    scene.store_rows(*facts(300, first=100))
    assert ids(await scene.ask("n399"))[0] == "u1f0399"
    assert scene.store.calls["rows"] == 2


async def test_an_erasure_voids_what_was_held() -> None:
    scene = Scene()
    await scene.known(*facts(5))
    await scene.ask("tea")
    scene.store.erase("u1")
    assert ids(await scene.ask("tea")) == []
    scene.store_rows(*facts(1, first=9))
    assert ids(await scene.ask("tea")) == ["u1f0009"]


async def test_a_row_purged_since_is_not_recalled_from_a_working_set_of_before() -> None:
    scene = Scene()
    rows = facts(3)
    await scene.known(*rows)
    assert len(ids(await scene.ask("tea"))) == 3
    scene.store_rows(replace(rows[0], status=MemoryStatus.DELETED, version=2))
    scene.clock.advance(1)
    purged = await scene.store.change(
        "u1",
        lambda tx: tx.removal.purge(
            [rows[0].memory_id], before=scene.clock(), actor="system", reason="purged"
        ),
    )
    assert purged == 1
    assert set(ids(await scene.ask("tea"))) == {row.memory_id for row in rows[1:]}


async def test_the_mean_is_rebuilt_when_a_tenth_of_the_rows_is_new() -> None:
    scene = Scene()
    await scene.known(*facts(80))
    await scene.ask("tea")
    await scene.known(*facts(3, first=100))
    await scene.ask("tea")
    assert scene.store.calls["rows"] == 1
    await scene.known(*facts(10, first=200))
    await scene.ask("tea")
    assert scene.store.calls["rows"] == 2


async def test_questions_that_come_together_share_the_reading() -> None:
    scene = Scene()
    await scene.known(*facts(200))
    answers = await asyncio.gather(*[scene.ask(f"n{n}") for n in range(20)])
    assert [ids(answer)[0] for answer in answers] == [f"u1f{n:04}" for n in range(20)]
    assert scene.store.calls["rows"] == 1


async def test_users_never_share_a_working_set() -> None:
    scene = Scene()
    users = [f"u{n}" for n in range(6)]
    await scene.known(*[row for user in users for row in facts(30, user)])
    asked = [scene.ask("tea fact n3", scope=Scope(user_id=user)) for user in users * 3]
    for user, answer in zip(users * 3, await asyncio.gather(*asked), strict=True):
        assert {item.candidate.memory.user_id for item in answer.items} == {user}


async def test_the_least_recently_used_goes_when_memory_is_short() -> None:
    row = facts(20)
    size = Held.build(
        [Scene().stored_row(one) for one in row], revision=1, total=20, keep=frozenset()
    ).nbytes
    scene = Scene(settings=replace(QUICK, working_set_bytes=int(size * 2.5)))
    for user in ("u1", "u2", "u3"):
        await scene.known(*facts(20, user))

    async def reads(user: str) -> int:
        before = scene.store.calls["rows"]
        assert ids(await scene.ask("n3", scope=Scope(user_id=user)))[0] == f"{user}f0003"
        return scene.store.calls["rows"] - before

    asked = [("u1", 1), ("u2", 1), ("u1", 0), ("u3", 1), ("u1", 0), ("u2", 1), ("u3", 1)]
    assert [await reads(user) for user, _ in asked] == [count for _, count in asked]


async def test_a_working_set_larger_than_all_memory_serves_and_goes() -> None:
    scene = Scene(settings=replace(QUICK, working_set_bytes=1))
    await scene.known(*facts(5))
    for reads in (1, 2):
        assert ids(await scene.ask("n3"))[0] == "u1f0003"
        assert scene.store.calls["rows"] == reads


async def test_building_large_ones_uses_the_threads_that_were_given() -> None:
    scene = Scene()
    await scene.known(*facts(150))
    with ThreadPoolExecutor(1) as threads:
        built_in: list[str] = []
        threads.submit(lambda: None).result()
        submit = threads.submit

        def watched(*work: object, **more: object) -> object:
            built_in.append("thread")
            return submit(*work, **more)  # type: ignore[arg-type]

        threads.submit = watched  # type: ignore[method-assign, assignment]
        scene.retriever = Retriever(
            reader=scene.store,
            writer=scene.store,
            index=scene.index,
            embedder=scene.embedder,
            clock=scene.clock,
            executor=threads,
        )
        assert ids(await scene.ask("n3"))[0] == "u1f0003"
        assert built_in == ["thread"]
        await scene.retriever.close()


# ---------------------------------------------------------------- more rows than are held


async def test_rows_beyond_the_limit_are_found_through_the_index() -> None:
    scene = Scene(settings=replace(QUICK, row_limit=5))
    far = memory("far", "Green mountains in the south.", importance=0.0)
    rows = [replace(one, importance=0.9) for one in facts(8)]
    scene.embedder.table = {
        "which hills": [1.0, *[0.0] * 63],
        far.content: [0.9, 0.1, *[0.0] * 62],
        **{indexed_text(one): [0.0, 1.0, *[0.0] * 62] for one in rows},
    }
    await scene.known(*rows, far)
    answer = await scene.ask("which hills")
    assert "far" in ids(answer)
    assert leg(answer, Leg.SEMANTIC).state is LegState.OK
    keyword = leg(answer, Leg.KEYWORD)
    assert (keyword.state, keyword.reason) == (LegState.DEGRADED, "rows_cut")
    assert not answer.degraded


async def test_new_rows_beyond_the_limit_are_found_before_the_index_knows_them() -> None:
    scene = Scene(settings=replace(QUICK, row_limit=3))
    await scene.known(*[replace(one, importance=0.9) for one in facts(3)])
    scene.store_rows(memory("new", "Moss and ferns.", importance=0.0))
    answer = await scene.ask("moss")
    assert ids(answer)[0] == "new"


async def test_without_the_index_rows_beyond_the_limit_are_said_to_be_cut() -> None:
    scene = Scene(settings=replace(QUICK, row_limit=5))
    await scene.known(*facts(8))
    scene.index.down = "unavailable"
    answer = await scene.ask("tea")
    assert leg(answer, Leg.SEMANTIC).reason == "unavailable,rows_cut"
    assert answer.degraded
    alone = Scene(settings=replace(QUICK, row_limit=5), without_index=True)
    alone.store_rows(*facts(8))
    answer = await alone.ask("tea")
    assert leg(answer, Leg.SEMANTIC).state is LegState.DEGRADED
    assert leg(answer, Leg.SEMANTIC).reason == "rows_cut"
    assert not answer.degraded


async def test_a_working_set_that_outgrew_its_limit_is_built_anew() -> None:
    scene = Scene(settings=replace(QUICK, row_limit=20))
    await scene.known(*facts(20))
    await scene.ask("tea")
    await scene.known(*facts(3, first=50))
    answer = await scene.ask("tea")
    assert scene.store.calls["rows"] == 2
    assert leg(answer, Leg.KEYWORD).reason == "rows_cut"


# ---------------------------------------------------------------- no working set in time


async def slow(scene: Scene) -> asyncio.Event:
    """Let reading all rows of a user wait until the event is set."""
    done, rows = asyncio.Event(), scene.store.rows

    async def waiting(*given: object, **more: object) -> object:
        await done.wait()
        return await rows(*given, **more)  # type: ignore[arg-type]

    scene.store.rows = waiting  # type: ignore[method-assign, assignment]
    return done


async def test_without_a_working_set_in_time_the_index_answers_and_the_next_has_it() -> None:
    scene = Scene()
    await scene.known(*facts(4), RULE)
    scene.store_rows(memory("new", "Tea fact number n77"))
    done = await slow(scene)
    answer = await scene.ask("tea fact n3", deadline=0.3)
    assert {"c1", "u1f0003", "new"} <= set(ids(answer))
    keyword = leg(answer, Leg.KEYWORD)
    assert (keyword.state, keyword.reason) == (LegState.DEGRADED, "timeout")
    assert answer.degraded
    done.set()
    assert not (await scene.ask("tea fact n3")).degraded
    assert scene.store.calls["rows"] == 1


async def test_with_nothing_in_time_the_pinned_rows_are_left() -> None:
    for scene in (Scene(), Scene(without_index=True)):
        await scene.known(*facts(5), RULE)
        await slow(scene)
        scene.index.down = "unavailable"
        answer = await scene.ask("tea fact n3", deadline=0.3)
        assert ids(answer) == ["c1"]
        assert leg(answer, Leg.SEMANTIC).state is LegState.FAILED
        assert leg(answer, Leg.KEYWORD).state is LegState.DEGRADED
        assert answer.degraded
        await scene.retriever.close()


async def test_without_working_set_and_embedder_the_new_rows_are_searched_for_words() -> None:
    scene = Scene()
    await scene.known(*facts(5))
    scene.store_rows(memory("new", "Tea fact number n77"))
    scene.embedder.down = "unavailable"
    await slow(scene)
    answer = await scene.ask("tea fact n3", deadline=0.3)
    assert ids(answer) == ["new"]
    await scene.retriever.close()


async def test_a_question_that_knows_more_does_not_take_an_older_reading() -> None:
    scene = Scene()
    await scene.known(*facts(5))
    done = await slow(scene)
    first = asyncio.create_task(scene.ask("n3"))
    await asyncio.sleep(0.02)
    scene.store_rows(*facts(1, first=77))
    second = asyncio.create_task(scene.ask("n77"))
    await asyncio.sleep(0.02)
    done.set()
    assert ids(await first)[0] == "u1f0003"
    assert ids(await second)[0] == "u1f0077"


async def test_the_fallback_that_does_not_come_in_time_leaves_the_words() -> None:
    scene = Scene()
    await scene.known(*facts(5))
    await scene.ask("n3")
    await slow(scene)
    scene.index.down = "unavailable"
    answer = await scene.ask("n3", deadline=0.3)
    assert ids(answer) == ["u1f0003"]
    semantic = leg(answer, Leg.SEMANTIC)
    assert (semantic.state, semantic.reason) == (LegState.FAILED, "unavailable")
    await scene.retriever.close()


async def test_a_reading_that_fails_is_tried_again() -> None:
    scene = Scene()
    await scene.known(*facts(5))
    rows = scene.store.rows

    async def failing(*_given: object, **_more: object) -> object:
        raise StoreUnavailable

    scene.store.rows = failing  # type: ignore[method-assign, assignment]
    with pytest.raises(StoreUnavailable):
        await scene.ask("tea")
    scene.store.rows = rows  # type: ignore[method-assign]
    assert len(ids(await scene.ask("tea"))) == 5


# ---------------------------------------------------------------- what is held


def test_time_is_divided_between_search_and_fallback() -> None:
    divided = until(QUICK, start=10.0, deadline=0.2)
    assert divided.search == pytest.approx(10.1)
    assert divided.search < divided.rows < divided.end == pytest.approx(10.2)
    assert until(QUICK, start=0.0, deadline=99.0).search == QUICK.search_most
    assert until(QUICK, start=0.0, deadline=99.0).end == QUICK.total


def test_what_was_read_of_older_words_is_not_learnt() -> None:
    scene = Scene()
    old, new = memory("m1", "old words", revision=1), memory("m1", "new words", revision=2)
    held = Held.build([replace(scene.stored_row(new), vector=None)], revision=2, total=1, keep=None)
    held.learn([(old, scene.embedder.vector("old words"))])
    assert held.vectors == {}
    held.learn([(new, scene.embedder.vector("new words"))])
    assert held.cosines(scene.embedder.vector("new words"))["m1"] == pytest.approx(1.0)


def test_rows_that_left_leave_no_embedding_behind() -> None:
    scene = Scene()
    row = memory("m1")
    held = Held.build([scene.stored_row(row)], revision=1, total=1, keep=None)
    size = held.nbytes
    deleted = replace(row, status=MemoryStatus.DELETED, update_time=row.update_time + timedelta(1))
    held.enter([scene.stored_row(deleted)], revision=2)
    assert held.vectors == {}
    assert held.nbytes < size
    assert held.cosines(scene.embedder.vector("anything")) == {}


def test_embeddings_that_the_index_knows_are_let_go_unless_all_are_held() -> None:
    scene = Scene()
    rows = [scene.stored_row(memory(f"m{n}")) for n in range(3)]
    some = Held.build(rows, revision=1, total=3, keep=frozenset({"m1", "m2"}))
    assert set(some.vectors) == {"m1", "m2"}
    some.prune({"m2": "pending"})
    assert set(some.vectors) == {"m2"}
    some.hold_all(rows)
    some.prune({})
    assert set(some.vectors) == {"m0", "m1", "m2"}
