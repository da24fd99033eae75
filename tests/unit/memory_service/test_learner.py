"""Learning from turns over fakes: what is stored, what is told, and what nothing can double."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.errors import (
    LeaseLost,
    MemoriesChanging,
    ModelUnavailable,
    ModelUnreadable,
    StoreUnavailable,
)
from memory_service.domain.ingest import (
    Action,
    Extraction,
    Intent,
    JobState,
    Judgement,
    Reason,
    Relation,
)
from memory_service.domain.model import MemoryStatus, MemoryType, Operation, Role, UserSettings
from memory_service.domain.text import indexed_text
from memory_service.domain.write import with_status
from tests.builders.facts import fact
from tests.builders.learning_scene import Learning, only
from tests.builders.memories import NOW, memory
from tests.builders.turns import talk, turn

C, D, U = Relation.CONFLICT, Relation.DUPLICATE, Relation.UPDATE


@pytest.fixture
async def scene() -> Learning:
    return Learning()


async def test_a_new_fact_is_stored_with_all_that_is_known_of_it(scene: Learning) -> None:
    outcome = await scene.said(
        "我喜欢黑咖啡。", fact("我喜欢黑咖啡。"), assistant_id="a1", run_id="r1"
    )
    decision = only(outcome)
    assert (decision.action, decision.reason) == (Action.ADD, Reason.NEW)
    row = scene.row(decision.memory_id)
    assert row.content == "我喜欢黑咖啡。"
    assert (row.conversation_id, row.turn_id, row.assistant_id, row.run_id) == (
        "c1",
        "t1",
        "a1",
        "r1",
    )
    (change,) = scene.history()
    assert (change.operation, change.actor, change.reason) == (Operation.CREATE, "system", "new")
    assert change.decision == decision
    assert (decision.model, decision.prompt_version) == ("", "e1/j1")
    assert (outcome.intent, outcome.warnings) == ("preference", ())
    key = (row.memory_id, scene.embedder.fingerprint)
    assert (scene.store.tables.vectors[key] == scene.embedder.vector(indexed_text(row))).all()


async def test_a_turn_without_facts_is_done_and_says_so(scene: Learning) -> None:
    claimed = await scene.claimed("Hello.")
    assert (await scene.learnt(claimed)).intent == "chitchat"
    assert (await scene.job(claimed)).state is JobState.DONE
    assert scene.history() == []


async def test_a14_what_is_there_word_for_word_is_refreshed_and_no_judge_is_asked(
    scene: Learning,
) -> None:
    before = scene.has("m1", "Likes tea", confidence=0.5, importance=0.9)
    scene.judge.relations["likes  TEA", "Likes tea"] = C
    decision = only(await scene.said("a", fact("likes  TEA", confidence=0.8)))
    assert (decision.action, decision.reason) == (Action.NONE, Reason.SAME_HASH)
    assert scene.judge.asked == []
    after = scene.row("m1")
    assert (after.content, after.confidence, after.importance) == ("Likes tea", 0.8, 0.9)
    assert after.version == before.version + 1
    assert len(scene.store.tables.memories) == 1


async def test_a29_what_was_written_by_hand_is_not_learnt_again_though_settings_hide_it(
    scene: Learning,
) -> None:
    scene.has("m1", "Likes tea", sensitivity_level=2, expire_time=NOW - timedelta(days=1))
    decision = only(await scene.said("a", fact("Likes tea")))
    assert (decision.reason, decision.memory_id) == (Reason.SAME_HASH, "m1")
    assert scene.row("m1").expire_time is None


async def test_hidden_memories_are_candidates_too(scene: Learning) -> None:
    scene.has("m1", "Likes tea", sensitivity_level=2)
    scene.has("m2", "Likes milk")
    scene.allow(UserSettings(disabled_types=frozenset({MemoryType.FACT})))
    scene.judge.relations["Likes tea a lot", "Likes tea"] = D
    decision = only(await scene.said("a", fact("Likes tea a lot")))
    assert (decision.reason, decision.memory_id) == (Reason.DUPLICATE, "m1")
    assert scene.active() == ["Likes milk", "Likes tea"]


async def test_a17_a_changed_preference_leaves_one_active_memory(scene: Learning) -> None:
    scene.has("m1", "Prefers tea", conversation_id="c0")
    scene.judge.relations["Prefers coffee now", "Prefers tea"] = C
    decision = only(await scene.said("a", fact("Prefers coffee now")))
    assert scene.active() == ["Prefers coffee now"]
    old = scene.row("m1")
    assert (old.status, old.superseded_by) == (MemoryStatus.SUPERSEDED, decision.memory_id)
    assert decision.superseded_ids == ("m1",)
    _, gone, made = scene.history()
    assert (gone.operation, gone.reason, gone.actor) == (Operation.SUPERSEDE, "conflict", "system")
    assert made.operation is Operation.CREATE
    assert gone.decision == made.decision == decision
    assert gone.revision == made.revision


async def test_an_implicit_fact_that_contradicts_an_explicit_memory_is_told_and_not_stored(
    scene: Learning,
) -> None:
    scene.has("m1", "Prefers tea", is_explicit=True)
    scene.judge.relations["Prefers coffee", "Prefers tea"] = C
    decision = only(await scene.said("a", fact("Prefers coffee")))
    assert (decision.action, decision.reason, decision.memory_id) == (
        Action.NONE,
        Reason.CONFLICT,
        "",
    )
    assert (scene.active(), scene.row("m1").version) == (["Prefers tea"], 1)


async def test_a15_an_update_changes_words_hash_and_vector_only(scene: Learning) -> None:
    scene.has("m1", "Likes tea", importance=0.9, confidence=0.8, metadata={"k": "v"})
    scene.judge.relations["Likes it hot", "Likes tea"] = (U, "Likes hot tea")
    decision = only(await scene.said("a", fact("Likes it hot")))
    after = scene.row("m1")
    assert (decision.action, decision.memory_id) == (Action.UPDATE, "m1")
    assert (after.content, after.importance, after.confidence) == ("Likes hot tea", 0.9, 0.8)
    assert after.metadata == {"k": "v"}
    key = ("m1", scene.embedder.fingerprint)
    assert (scene.store.tables.vectors[key] == scene.embedder.vector("Likes hot tea")).all()


async def test_a13_an_unknown_target_changes_nothing_and_is_told(scene: Learning) -> None:
    scene.has("m1", "Likes tea")
    scene.judge.also = [Judgement(memory_id="12", relation=U, merged="T")]
    outcome = await scene.said("a", fact("N"))
    assert only(outcome).reason is Reason.NEW
    assert outcome.warnings == ("unknown_target",)
    assert scene.active() == ["Likes tea", "N"]


async def test_a_merged_text_that_another_memory_says_makes_no_second_one(
    scene: Learning,
) -> None:
    scene.has("m1", "Likes tea")
    scene.has("m2", "Likes hot tea")
    scene.judge.relations["Likes it hot", "Likes tea"] = (U, "likes hot TEA")
    decision = only(await scene.said("a", fact("Likes it hot")))
    assert (decision.action, decision.reason, decision.memory_id) == (
        Action.NONE,
        Reason.SAME_HASH,
        "m2",
    )
    assert len(decision.candidates) == 2
    assert (scene.row("m1").version, scene.row("m2").version) == (1, 2)


async def test_a16_a_judge_that_cannot_be_understood_costs_no_fact_of_the_turn(
    scene: Learning,
) -> None:
    scene.has("m1", "Likes tea")
    scene.judge.error = ModelUnreadable()
    outcome = await scene.said("a", fact("Likes coffee"), fact("Lives in Oslo"))
    assert [one.action for one in outcome.decisions] == [Action.ADD, Action.ADD]
    assert outcome.warnings == ("unreadable_judgement",)
    assert scene.row("m1").status is MemoryStatus.ACTIVE


async def test_a16_facts_that_are_dropped_do_not_stop_the_others(scene: Learning) -> None:
    outcome = await scene.said(
        "a",
        fact("x" * 1001),
        fact("My password is hunter2hunter2"),
        fact("Perhaps", confidence=0.2),
        fact("y"),
    )
    assert [one.reason for one in outcome.decisions] == [
        Reason.INVALID_FACT,
        Reason.SECRET,
        Reason.LOW_CONFIDENCE,
        Reason.NEW,
    ]
    assert outcome.warnings == ("invalid_fact",)
    assert scene.active() == ["y"]
    assert "hunter2" not in repr((outcome, scene.history()))
    assert {one.prompt_version for one in outcome.decisions} == {"e1/j1"}


async def test_intents_that_store_nothing_store_nothing_and_say_what_was_read(
    scene: Learning,
) -> None:
    scene.extractor.extractions["a"] = Extraction(
        intent=Intent.TASK_REQUEST, facts=(fact(),), warnings=("truncated", "truncated")
    )
    outcome = await scene.learnt(await scene.claimed("a"))
    assert (only(outcome).reason, outcome.warnings) == (Reason.INTENT, ("truncated",))
    assert scene.active() == []


# ------------------------------------------------------------------ facts of one turn


async def test_facts_of_one_turn_that_are_equal_make_one_memory(scene: Learning) -> None:
    first, second = (await scene.said("a", fact("Likes tea"), fact("likes tea"))).decisions
    assert (first.reason, second.reason) == (Reason.NEW, Reason.SAME_HASH)
    assert second.memory_id == first.memory_id
    assert (scene.active(), scene.row(first.memory_id).version) == (["Likes tea"], 2)


async def test_of_facts_of_one_turn_that_contradict_each_other_the_later_stays(
    scene: Learning,
) -> None:
    scene.has("m1", "Prefers milk")
    scene.judge.relations |= {
        ("Prefers tea", "Prefers milk"): C,
        ("Prefers coffee", "Prefers tea"): C,
        ("Prefers coffee", "Prefers milk"): C,
    }
    outcome = await scene.said("a", fact("Prefers tea"), fact("Prefers coffee"))
    first, second = outcome.decisions
    assert scene.active() == ["Prefers coffee"]
    assert scene.superseded() == ["Prefers milk", "Prefers tea"]
    assert (first.superseded_ids, second.superseded_ids) == (("m1",), (first.memory_id,))
    assert [one.memory_id for one in second.candidates] == [first.memory_id]


async def test_an_update_of_what_the_turn_itself_updated_goes_on_from_there(
    scene: Learning,
) -> None:
    scene.has("m1", "Likes tea")
    scene.judge.relations |= {
        ("hot", "Likes tea"): (U, "Likes hot tea"),
        ("green", "Likes hot tea"): (U, "Likes hot green tea"),
    }
    await scene.said("a", fact("hot"), fact("green"))
    assert (scene.active(), scene.row("m1").version) == (["Likes hot green tea"], 3)


async def test_what_the_turn_itself_rewrote_is_no_longer_what_it_was(scene: Learning) -> None:
    scene.has("m1", "Likes tea")
    scene.judge.relations["hot", "Likes tea"] = (U, "Likes hot tea")
    outcome = await scene.said("a", fact("hot"), fact("Likes tea"))
    assert [one.action for one in outcome.decisions] == [Action.UPDATE, Action.ADD]
    assert scene.active() == ["Likes hot tea", "Likes tea"]


# ------------------------------------------------------------------ candidates


async def test_no_cap_hides_statements_that_the_new_one_contradicts(scene: Learning) -> None:
    for number in range(8):
        scene.has(f"m{number}", f"Prefers tea {number}")
        scene.judge.relations["Prefers coffee", f"Prefers tea {number}"] = C
    decision = only(await scene.said("a", fact("Prefers coffee")))
    assert len(decision.superseded_ids) == 8
    assert [len(asked) for _, asked in scene.judge.asked] == [5, 3]
    assert scene.active() == ["Prefers coffee"]


async def test_five_candidates_are_judged_if_one_of_them_is_no_conflict(scene: Learning) -> None:
    for number in range(8):
        scene.has(f"m{number}", f"Prefers tea {number}")
    assert len(only(await scene.said("a", fact("Prefers coffee"))).candidates) == 5


async def test_without_the_embedder_words_tell(scene: Learning) -> None:
    scene.has("m1", "Prefers tea")
    scene.has("m2", "Prefers milk")
    scene.has("m3", "Something else")
    scene.embedder.down = "unavailable"
    await scene.said("a", fact("Prefers hot tea"))
    ((_, asked),) = scene.judge.asked
    assert asked[0] == "Prefers tea"
    assert "Something else" not in asked
    assert not scene.store.tables.vectors.keys() & {("id000001", scene.embedder.fingerprint)}


# ------------------------------------------------------------------ what others do meanwhile


async def test_what_changes_while_it_is_decided_is_decided_about_anew(scene: Learning) -> None:
    before = scene.has("m1", "Prefers tea")
    scene.judge.relations["Prefers coffee", "Prefers tea"] = C

    async def rewrite() -> None:
        if len(scene.judge.asked) == 1:
            scene.store.seed("u1", replace(before, version=2, title="by hand"))

    scene.judge.meanwhile = rewrite
    await scene.said("a", fact("Prefers coffee"))
    assert len(scene.judge.asked) == 2
    assert scene.active() == ["Prefers coffee"]
    assert (scene.row("m1").title, scene.row("m1").version) == ("by hand", 3)


async def test_an_equal_memory_that_appears_meanwhile_is_refreshed(scene: Learning) -> None:
    scene.has("m0", "Something")

    async def write() -> None:
        if len(scene.judge.asked) == 1:
            scene.has("m1", "Likes tea")

    scene.judge.meanwhile = write
    assert only(await scene.said("a", fact("Likes tea"))).reason is Reason.SAME_HASH
    assert scene.active() == ["Likes tea", "Something"]


async def test_a_competing_memory_that_appears_meanwhile_is_compared(scene: Learning) -> None:
    scene.has("m0", "Something")
    scene.judge.relations["Prefers coffee", "Prefers tea"] = C

    async def write() -> None:
        if len(scene.judge.asked) == 1:
            scene.has("m1", "Prefers tea", memory_type=MemoryType.CONSTRAINT)

    scene.judge.meanwhile = write
    await scene.said("a", fact("Prefers coffee"))
    assert scene.active() == ["Prefers coffee", "Something"]


async def test_a_candidate_that_is_deleted_meanwhile_is_left_alone(scene: Learning) -> None:
    before = scene.has("m1", "Likes tea")
    scene.judge.relations["Likes it hot", "Likes tea"] = (U, "Likes hot tea")

    async def delete() -> None:
        if len(scene.judge.asked) == 1:
            scene.store.seed("u1", with_status(before, MemoryStatus.DELETED, NOW))

    scene.judge.meanwhile = delete
    await scene.said("a", fact("Likes it hot"))
    assert (scene.active(), scene.row("m1").content) == (["Likes it hot"], "Likes tea")


async def test_what_has_nothing_to_do_with_it_may_change_meanwhile(scene: Learning) -> None:
    scene.has("m1", "Prefers tea")

    async def write() -> None:
        scene.has("m2", "Prefers milk", assistant_id="a2")
        scene.has("m3", "Lives in Rome", memory_type=MemoryType.FACT)

    scene.judge.meanwhile = write
    await scene.said("a", fact("Prefers coffee"))
    assert len(scene.judge.asked) == 1


async def test_an_attempt_fails_if_the_memories_never_stand_still(scene: Learning) -> None:
    row = scene.has("m1", "Prefers tea")

    async def rewrite() -> None:
        now = scene.row("m1")
        scene.store.seed("u1", replace(now, version=now.version + 1))

    scene.judge.meanwhile = rewrite
    claimed = await scene.claimed("a")
    scene.extractor.extractions["a"] = [fact("Prefers coffee")]
    with pytest.raises(MemoriesChanging):
        await scene.learner.learn(claimed)
    assert len(scene.extractor.turns) == 1, "what was read is not read again"
    assert len(scene.judge.asked) == 4
    assert scene.active() == [row.content]
    assert (await scene.job(claimed)).state is JobState.RUNNING


async def test_settings_that_change_meanwhile_count(scene: Learning) -> None:
    scene.has("m1", "Something")

    async def switch_off() -> None:
        scene.allow(UserSettings(implicit_memory_enabled=False))

    scene.judge.meanwhile = switch_off
    assert only(await scene.said("a", fact("Likes tea"))).reason is Reason.SETTINGS
    assert scene.active() == ["Something"]


async def test_memory_switched_off_while_a_turn_is_read_ends_the_job(scene: Learning) -> None:
    async def switch_off() -> None:
        scene.allow(UserSettings(memory_enabled=False))

    scene.extractor.meanwhile = switch_off
    outcome = await scene.said("a", fact("Likes tea"))
    assert (outcome.intent, outcome.decisions, outcome.warnings) == ("", (), ("settings",))


async def test_an_erasure_while_a_turn_is_judged_leaves_nothing_behind(scene: Learning) -> None:
    scene.has("m1", "Something")

    async def erase() -> None:
        held = scene.store.tables.jobs.copy()
        scene.store.erase("u1")
        scene.store.tables.jobs.update(held)

    scene.judge.meanwhile = erase
    outcome = await scene.said("a", fact("Likes tea"))
    assert outcome.warnings == ("erased",)
    assert scene.store.tables.of("u1") == []


async def test_what_was_said_until_an_erasure_is_never_read(scene: Learning) -> None:
    first, second = talk((Role.USER, "a"), (Role.USER, "b")).messages
    said = (first, replace(second, create_time=NOW + timedelta(hours=1)))
    claimed = await scene.queued(replace(turn(), messages=said))
    held = scene.store.tables.jobs.copy()

    async def erase() -> None:
        scene.judge.meanwhile = nothing
        scene.store.erase("u1")
        scene.store.tables.jobs.update(held)

    async def nothing() -> None:
        return

    scene.has("m1", "Something")
    scene.extractor.extractions["a"] = [fact("Likes tea")]
    scene.extractor.extractions["b"] = [fact("Likes rice")]
    scene.judge.meanwhile = erase
    await scene.learner.learn(claimed)
    assert scene.active() == ["Likes rice"]
    assert scene.extractor.turns[-1].messages == (said[1],)


async def test_a_turn_of_which_an_erasure_left_nothing_is_not_read(scene: Learning) -> None:
    claimed = await scene.claimed("a")
    held = scene.store.tables.jobs.copy()
    scene.store.erase("u1")
    scene.store.tables.jobs.update(held)
    assert (await scene.learnt(claimed)).warnings == ("erased",)
    assert scene.extractor.turns == []


async def test_an_erasure_that_the_turn_outlives_makes_it_decide_anew(scene: Learning) -> None:
    scene.has("m1", "Prefers tea")
    scene.judge.relations["Likes it hot", "Prefers tea"] = (U, "Prefers hot tea")

    async def erase() -> None:
        held = scene.store.tables.jobs.copy()
        scene.store.erase("u1")
        scene.store.tables.jobs.update(held)

    scene.judge.meanwhile = erase
    later = NOW + timedelta(hours=1)
    await scene.said("a", fact("Likes it hot"), create_time=later)
    assert scene.active() == ["Likes it hot"]


# ------------------------------------------------------------------ crashes and outages


async def test_a_transaction_that_is_run_again_after_its_commit_doubles_nothing(
    scene: Learning,
) -> None:
    claimed = await scene.claimed("a")
    scene.extractor.extractions["a"] = [fact("Likes tea")]
    await scene.learner.learn(claimed)
    await scene.learner.learn(claimed)
    assert (scene.active(), len(scene.history())) == (["Likes tea"], 1)


async def test_a_worker_that_lost_its_lease_stores_nothing(scene: Learning) -> None:
    claimed = await scene.claimed("a")
    scene.extractor.extractions["a"] = [fact("Likes tea")]
    scene.clock.advance(100)
    taken = await scene.store.queue.claim(lease=60, now=scene.clock())
    assert taken is not None
    with pytest.raises(LeaseLost):
        await scene.learner.learn(claimed)
    assert scene.active() == []
    await scene.learner.learn(taken)
    assert scene.active() == ["Likes tea"]


@pytest.mark.parametrize("where", ["extractor", "judge"])
async def test_a_model_that_is_away_leaves_all_as_it_was(scene: Learning, where: str) -> None:
    scene.has("m1", "Prefers tea")
    claimed = await scene.claimed("a")
    scene.extractor.extractions["a"] = [fact("Likes tea")]
    getattr(scene, where).error = ModelUnavailable()
    with pytest.raises(ModelUnavailable):
        await scene.learner.learn(claimed)
    assert scene.active() == ["Prefers tea"]
    assert (await scene.job(claimed)).state is JobState.RUNNING


async def test_sql_that_is_away_is_told(scene: Learning) -> None:
    claimed = await scene.claimed("a")
    scene.store.down = True
    with pytest.raises(StoreUnavailable):
        await scene.learner.learn(claimed)


async def test_no_transaction_is_open_while_a_model_thinks(scene: Learning) -> None:
    scene.has("m1", "Something")
    thinking = asyncio.Event()
    go_on = asyncio.Event()

    async def think() -> None:
        thinking.set()
        await go_on.wait()

    scene.judge.meanwhile = think
    task = asyncio.create_task(scene.said("a", fact("Likes tea")))
    await thinking.wait()
    changes = scene.store.calls["change"]
    scene.has("m9", "By hand meanwhile", assistant_id="a9")
    go_on.set()
    await task
    assert changes == 0


# ------------------------------------------------------------------ dry runs


async def test_a_dry_run_tells_the_same_and_stores_nothing(scene: Learning) -> None:
    scene.has("m1", "Prefers milk")
    scene.judge.relations |= {
        ("Prefers tea", "Prefers milk"): C,
        ("Prefers coffee", "Prefers tea"): C,
    }
    scene.extractor.extractions["a"] = [fact("Prefers tea"), fact("Prefers coffee")]
    revision = scene.store.tables.state("u1").revision
    dry = await scene.learner.dry_run(turn("a"))
    assert scene.active() == ["Prefers milk"]
    assert scene.store.tables.state("u1").revision == revision
    first, second = dry.decisions
    assert (first.action, first.memory_id, first.fact.memory_id) == (Action.ADD, "", "")
    assert first.superseded_ids == ("m1",)
    assert (second.superseded_ids, second.candidates[0].memory_id) == ((), "")
    wet = await scene.said("a", fact("Prefers tea"), fact("Prefers coffee"))
    assert [(one.action, one.reason) for one in wet.decisions] == [
        (one.action, one.reason) for one in dry.decisions
    ]


async def test_a_dry_run_for_whom_memory_is_off_says_why(scene: Learning) -> None:
    scene.allow(UserSettings(memory_enabled=False))
    assert (await scene.learner.dry_run(turn("a"))).warnings == ("settings",)
    assert scene.extractor.turns == []


async def test_users_are_apart(scene: Learning) -> None:
    scene.store_rows(memory("x1", "Likes tea", user_id="u2", memory_type=MemoryType.PREFERENCE))
    assert only(await scene.said("a", fact("Likes tea"))).reason is Reason.NEW
    assert only(await scene.said("b", fact("Likes tea now"))).candidates[0].memory_id != "x1"
    assert scene.active("u2") == ["Likes tea"]
