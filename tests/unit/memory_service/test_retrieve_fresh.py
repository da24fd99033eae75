"""Read your writes: a memory is found from the moment it is acknowledged."""

from dataclasses import replace

import pytest

from memory_service.domain.model import IndexState, MemoryStatus
from memory_service.domain.recall import Leg, Mode
from tests.builders.memories import memory
from tests.builders.retrieving import QUICK, Scene, ids, leg

QUESTION = "what must I not eat"
PEANUTS = memory("m1", "User is allergic to peanuts.")
OTHER = memory("m9", "User lives in Lyon.")


def axis(*values: float) -> list[float]:
    return [*values, *[0.0] * (64 - len(values))]


def scene() -> Scene:
    made = Scene()
    made.embedder.table = {
        QUESTION: axis(1),
        PEANUTS.content: axis(0.9, 0.4359),
        OTHER.content: axis(-1),
    }
    return made


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_memory_is_found_before_the_index_knows_it(mode: Mode) -> None:
    fresh = scene()
    await fresh.known(OTHER)
    await fresh.ask(QUESTION, mode=mode)
    revision = fresh.store_rows(PEANUTS)
    answer = await fresh.ask(QUESTION, mode=mode, min_revision=revision)
    assert ids(answer)[0] == "m1"
    assert answer.items[0].candidate.legs == {Leg.SEMANTIC}
    assert answer.items[0].candidate.memory.index_state is IndexState.PENDING
    assert not answer.degraded
    assert answer.revision == revision


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_memory_without_an_embedding_is_embedded_on_the_fly(mode: Mode) -> None:
    fresh = scene()
    await fresh.known(OTHER)
    fresh.store_rows(PEANUTS, embedded=False)
    answer = await fresh.ask(QUESTION, mode=mode)
    assert ids(answer)[0] == "m1"
    assert fresh.embedder.documents == [PEANUTS.content]


async def test_it_is_embedded_once() -> None:
    fresh = scene()
    fresh.store_rows(PEANUTS, embedded=False)
    for _ in range(3):
        assert ids(await fresh.ask(QUESTION)) == ["m1"]
    assert fresh.embedder.documents == [PEANUTS.content]


async def test_only_so_many_are_embedded_for_one_question() -> None:
    fresh = Scene(settings=replace(QUICK, embed_limit=2))
    fresh.store_rows(*[memory(f"m{n}") for n in range(5)], embedded=False)
    for embedded in (2, 4, 5, 5):
        await fresh.ask("anything at hand")
        assert len(fresh.embedder.documents) == embedded


async def test_an_embedding_that_the_relay_stored_meanwhile_is_read() -> None:
    fresh = scene()
    fresh.store_rows(PEANUTS, OTHER, embedded=False)
    fresh.embedder.down = "unavailable"
    assert ids(await fresh.ask(QUESTION)) == []
    fresh.embedder.down = ""
    vectors = {row.memory_id: fresh.embedder.vector(row.content) for row in (PEANUTS, OTHER)}
    await fresh.store.store_vectors(vectors, fingerprint=fresh.embedder.fingerprint)
    await fresh.tell_index()
    answer = await fresh.ask(QUESTION)
    assert ids(answer) == ["m1"]
    assert fresh.embedder.documents == []
    assert answer.items[0].candidate.memory.index_state is IndexState.SYNCED
    loads = fresh.store.calls["load"]
    await fresh.ask(QUESTION)
    assert fresh.store.calls["load"] == loads


async def test_documents_that_cannot_be_embedded_leave_the_words() -> None:
    fresh = scene()
    fresh.store_rows(PEANUTS, embedded=False)

    async def refuse(_texts: object) -> object:
        raise TimeoutError

    fresh.embedder.embed_documents = refuse  # type: ignore[method-assign, assignment]
    assert ids(await fresh.ask(QUESTION)) == []
    assert ids(await fresh.ask("allergic to what")) == ["m1"]


@pytest.mark.parametrize("mode", list(Mode))
async def test_what_the_index_knows_of_older_words_does_not_count(mode: Mode) -> None:
    fresh = scene()
    await fresh.known(PEANUTS, OTHER)
    fresh.embedder.table["User moved to Rome."] = axis(-0.9, -0.4)
    moved = memory("m1", "User moved to Rome.", version=2)
    fresh.store_rows(moved)
    answer = await fresh.ask(QUESTION, mode=mode)
    if mode is Mode.HYBRID:
        assert ids(answer) == []
    else:
        assert all(item.score == 0 for item in answer.items)
    assert leg(answer, Leg.SEMANTIC).reason == ""


async def test_a_row_that_cannot_be_indexed_is_found_by_words_only() -> None:
    fresh = scene()
    await fresh.known(PEANUTS)
    fresh.embedder.table["Peanuts are bad for the user."] = axis(0)
    await fresh.known(memory("m1", "Peanuts are bad for the user.", version=2))
    fresh.index.rows["m1"] = (PEANUTS, fresh.embedder.vector(PEANUTS.content))
    assert ids(await fresh.ask(QUESTION)) == []
    answer = await fresh.ask("peanuts")
    assert answer.items[0].candidate.legs == {Leg.KEYWORD}
    assert answer.items[0].candidate.memory.index_state is IndexState.FAILED


async def test_a_change_is_seen_at_the_next_question() -> None:
    fresh = scene()
    await fresh.known(PEANUTS)
    assert ids(await fresh.ask("peanuts")) == ["m1"]
    fresh.store_rows(
        replace(PEANUTS, status=MemoryStatus.SUPERSEDED), memory("m2", "Eats peanuts.")
    )
    assert ids(await fresh.ask("peanuts")) == ["m2"]
    fresh.store_rows(replace(PEANUTS, status=MemoryStatus.ACTIVE))
    assert set(ids(await fresh.ask("peanuts"))) == {"m1", "m2"}
    assert fresh.store.calls["rows"] == 1
