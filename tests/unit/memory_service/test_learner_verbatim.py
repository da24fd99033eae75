"""Turns kept word for word by the learner, over fakes."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.ingest import Action, Turn
from memory_service.domain.model import IndexState, Memory, MemoryType, Role, UserSettings
from memory_service.domain.text import indexed_text
from tests.builders.facts import fact
from tests.builders.learning_scene import Learning, only
from tests.builders.memories import NOW
from tests.builders.retrieving import ids
from tests.builders.turns import talk

USER, ASSISTANT = Role.USER, Role.ASSISTANT
WANTED = UserSettings(verbatim_turns_enabled=True)
TALK = talk(
    (USER, "I moved to Lyon."),
    (ASSISTANT, "Where do you live there?"),
    (USER, "Near the old harbour."),
)


@pytest.fixture
async def scene() -> Learning:
    scene = Learning(verbatim=True)
    scene.allow(WANTED)
    return scene


def verbatim(scene: Learning) -> list[Memory]:
    rows = scene.store.tables.memories.values()
    return sorted((row for row in rows if row.is_verbatim), key=lambda row: row.memory_id)


async def test_a_turn_is_kept_beside_the_facts_in_the_same_transaction(scene: Learning) -> None:
    scene.extractor.extractions["I moved to Lyon."] = [fact("Lives in Lyon")]
    outcome = await scene.learnt(await scene.queued(TALK))
    assert only(outcome).action is Action.ADD, "decisions are for facts only"
    assert outcome.warnings == ()
    rows = verbatim(scene)
    assert [(row.role, row.content) for row in rows] == [
        (message.role, message.content) for message in TALK.messages
    ]
    assert len({row.revision for row in scene.store.tables.memories.values()}) == 1
    said = [change for change in scene.history() if change.reason == "verbatim"]
    assert [(one.operation, one.actor, one.decision) for one in said] == [
        ("create", "system", None)
    ] * 3
    vectors = scene.store.tables.vectors
    for row in rows:
        key = (row.memory_id, scene.embedder.fingerprint)
        if row.role is USER:
            assert (vectors[key] == scene.embedder.vector(indexed_text(row))).all()
        else:
            assert key not in vectors
    assert [row.index_state for row in rows] == [
        IndexState.PENDING,
        IndexState.REMOVED,
        IndexState.PENDING,
    ]


async def test_small_talk_is_kept_too(scene: Learning) -> None:
    outcome = await scene.learnt(await scene.queued(TALK))
    assert (outcome.intent, outcome.decisions) == ("chitchat", ())
    assert len(verbatim(scene)) == 3


async def test_a_turn_that_comes_again_doubles_nothing(scene: Learning) -> None:
    twice = replace(TALK, messages=(*TALK.messages, TALK.messages[0]))
    for _ in range(2):
        await scene.learnt(await scene.queued(twice))
    assert len(verbatim(scene)) == 3
    assert {row.version for row in verbatim(scene)} == {1}
    next_turn = replace(TALK, turn_id="t2")
    await scene.learnt(await scene.queued(next_turn))
    assert len(verbatim(scene)) == 6


async def test_what_is_not_kept_is_told_once(scene: Learning) -> None:
    long = "x" * 16_385
    said = talk((USER, long), (USER, long + "y"), (USER, "My password is hunter22."))
    outcome = await scene.learnt(await scene.queued(said))
    assert outcome.warnings == ("too_long", "secret")
    assert verbatim(scene) == []


async def test_a_dry_run_tells_the_same_and_keeps_nothing(scene: Learning) -> None:
    outcome = await scene.learner.dry_run(talk((USER, "x" * 16_385), (USER, "Hi")))
    assert outcome.warnings == ("too_long",)
    assert verbatim(scene) == []


Prepare = Callable[[], Awaitable[Learning]]


async def not_deployed() -> Learning:
    scene = Learning()
    scene.allow(WANTED)
    return scene


async def not_wanted() -> Learning:
    return Learning(verbatim=True)


async def switched_off_meanwhile() -> Learning:
    scene = Learning(verbatim=True)
    scene.allow(WANTED)

    async def switch_off() -> None:
        scene.allow(UserSettings())

    scene.extractor.meanwhile = switch_off
    return scene


async def switched_off_before_it_is_stored() -> Learning:
    scene = Learning(verbatim=True)
    scene.allow(WANTED)
    scene.has("m1", "Lives in Lyon")
    scene.extractor.extractions["I moved to Lyon."] = [fact("Moved to Lyon")]

    async def switch_off() -> None:
        scene.allow(UserSettings())

    scene.judge.meanwhile = switch_off
    return scene


@pytest.mark.parametrize(
    "prepare", [not_deployed, not_wanted, switched_off_meanwhile, switched_off_before_it_is_stored]
)
async def test_nothing_is_kept_unless_deployment_and_user_want_it(prepare: Prepare) -> None:
    scene = await prepare()
    await scene.learnt(await scene.queued(TALK))
    assert verbatim(scene) == []


async def test_no_fact_is_compared_with_them_and_none_makes_way(scene: Learning) -> None:
    await scene.learnt(await scene.queued(TALK))
    before = verbatim(scene)
    scene.extractor.extractions["I moved to Lyon."] = [
        fact("I moved to Lyon.", memory_type=MemoryType.FACT)
    ]
    outcome = await scene.learnt(await scene.queued(replace(TALK, turn_id="t9")))
    decision = only(outcome)
    assert (decision.action, decision.candidates) == (Action.ADD, ())
    assert scene.judge.asked == []
    assert verbatim(scene)[:3] == before


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        (TALK, "Where do I live in Lyon?", "Near the old harbour."),
        (
            talk((USER, "我搬到里昂了。"), (ASSISTANT, "你住在里昂哪里？"), (USER, "旧港口旁边。")),
            "我住在里昂哪里？",
            "旧港口旁边。",
        ),
    ],
    ids=["en", "zh"],
)
async def test_what_was_said_weeks_ago_is_found_with_the_help_of_what_was_said_around_it(
    scene: Learning, said: Turn, question: str, answer: str
) -> None:
    await scene.learnt(await scene.queued(said))
    scene.embedder.table = {question: [1.0, *[0.0] * 63]}
    await scene.tell_index()
    scene.clock.advance(timedelta(days=21))
    found = await scene.ask(question, explain=True)
    contents = [item.candidate.memory.content for item in found.items]
    assert answer in contents
    assert {item.candidate.memory.role for item in found.items} == {USER}
    parts = found.items[contents.index(answer)].candidate.relevance_parts
    assert parts["near"] > 0
    scene.allow(UserSettings())
    assert ids(await scene.ask(question)) == ids(found), "off: nothing more is kept, no more"
    scene.clock.now = NOW + timedelta(days=90)
    assert ids(await scene.ask(question)) == []
