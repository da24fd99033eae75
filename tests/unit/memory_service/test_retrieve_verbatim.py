"""Verbatim turns in an answer: the user's are found, the assistant's only help to find them."""

from dataclasses import replace

import pytest

from memory_service.domain.model import Memory, MemoryType, Role
from memory_service.domain.recall import Mode
from tests.builders.memories import memory
from tests.builders.retrieving import PATIENT, QUICK, Scene, ids
from tests.builders.scored_rows import turn

ASKED = "Which city did the user move to?"
QUESTION = turn("t1", "Which city did you move to?", at=0, role=Role.ASSISTANT)
ANSWER = turn("t2", "Lyon, near the old harbour", at=20, role=Role.USER)
PRAISE = turn("t3", "That city is lovely to move to", at=40, role=Role.ASSISTANT)
CAKE = turn("t4", "I baked a cake", at=9_000, role=Role.USER)


def scenes() -> list[Scene]:
    """With an index, without one, with one that is down, and with exact cosines."""
    down = Scene(settings=QUICK)
    down.index.down = "unavailable"
    return [Scene(), Scene(without_index=True), down, Scene(settings=replace(PATIENT, exact=True))]


@pytest.mark.parametrize("scene", scenes(), ids=["index", "no index", "index down", "exact"])
async def test_the_assistants_words_help_to_find_the_users_and_are_not_returned(
    scene: Scene,
) -> None:
    scene.store_rows(QUESTION, ANSWER, PRAISE, CAKE)
    if not scene.index.down:
        await scene.tell_index()
    answer = await scene.ask(ASKED, explain=True)
    assert ids(answer)[0] == "t2"
    assert not {"t1", "t3"} & set(ids(answer))
    assert not answer.dropped
    assert answer.items[0].candidate.relevance_parts["near"] > 0
    assert set(scene.index.rows) <= {"t2", "t4"}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("text", [ASKED, ""])
async def test_no_mode_returns_them_whatever_their_type(mode: Mode, text: str) -> None:
    said: list[Memory] = [
        memory(f"m{i}", memory_type=kind, confidence=1, is_verbatim=True, role=Role.ASSISTANT)
        for i, kind in enumerate(MemoryType)
    ]
    for scene in (Scene(), Scene(without_index=True)):
        await scene.known(*said, QUESTION)
        answer = await scene.ask(text, mode=mode)
        assert (ids(answer), answer.pinned_total) == ([], 0)


async def test_an_assistant_with_much_to_say_pushes_nobody_out_of_the_index_hits() -> None:
    scene = Scene(settings=replace(PATIENT, index_limit=2))
    said = [
        turn(f"a{i}", ASKED, at=20 * i, conversation_id="c2", role=Role.ASSISTANT) for i in range(9)
    ]
    await scene.known(*said, replace(ANSWER, conversation_id="c3"), CAKE)
    assert set(scene.index.rows) == {"t2", "t4"}
    answer = await scene.ask("zzz")
    assert set(ids(answer)) <= {"t2", "t4"}


async def test_no_request_embeds_them() -> None:
    scene = Scene(without_index=True)
    scene.store_rows(QUESTION, ANSWER, PRAISE)
    for _ in range(2):
        await scene.ask(ASKED)
        scene.store_rows(replace(CAKE, version=2), QUESTION)
    assert scene.embedder.documents == []
