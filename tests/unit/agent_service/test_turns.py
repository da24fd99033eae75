"""The turns of one process and more: begun, read, repeated, resumed, cancelled, shut down."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent_service.domain.errors import (
    ClientMessageIdReused,
    ModelUnavailable,
    SeqNotReached,
    StoreUnavailable,
    TurnNotFound,
    TurnRunning,
)
from agent_service.domain.model import (
    ContextAssembled,
    Delta,
    Done,
    Failed,
    MemoryUsed,
    Role,
    Started,
    TurnEvent,
    Usage,
)
from agent_service.ports import AssistantSaid, ModelFinish, ModelText, TurnOpened, UserSaid
from tests.builders.agent_turns import new_turn
from tests.builders.chatting import Chat, answer_of, command
from tests.fakes.faulty_agent_store import FOREVER
from tests.fakes.model import says

Reading = AsyncGenerator[TurnEvent, None]


def kinds(events: list[TurnEvent]) -> list[type]:
    return [type(event.event) for event in events]


def held(*pieces: str) -> tuple[list[Any], asyncio.Event]:
    """Script an answer that waits after its pieces until the event is set."""
    go = asyncio.Event()
    return [*(ModelText(piece) for piece in pieces), go, ModelFinish("stop")], go


async def begun(reading: Reading, *, deltas: int = 1) -> str:
    """Read until so many deltas came and give the turn's id."""
    turn_id = ""
    async for event in reading:
        if isinstance(event.event, Started):
            turn_id = event.event.turn_id
        deltas -= isinstance(event.event, Delta)
        if not deltas:
            break
    return turn_id


async def answers(chat: Chat, conversation_id: str = "c1") -> list[AssistantSaid]:
    timeline = await chat.store.timeline("ann", conversation_id, after=0, before=None, limit=99)
    return [kept.event for kept in timeline if isinstance(kept.event, AssistantSaid)]


async def collected(reading: Reading) -> list[TurnEvent]:
    return [event async for event in reading]


# ---------------------------------------------------------------- one turn


async def test_a_turn_starts_first_ends_once_and_counts_without_gaps() -> None:
    chat = Chat(says("He", "llo"))
    events = await chat.say()
    assert kinds(events) == [Started, MemoryUsed, ContextAssembled, Delta, Delta, Usage, Done]
    assert [event.seq for event in events] == list(range(1, 8))
    assert [event.last for event in events] == [False] * 6 + [True]
    assert [event.seq for event in await chat.stored("id000001")] == list(range(1, 8))


async def test_started_tells_the_ids_and_that_the_message_is_stored() -> None:
    chat = Chat()
    reading = chat.turns.run(command(conversation_id="", request_id="r7"))
    started = (await anext(reading)).event
    assert started == Started("id000001", "id000002", "r7", conversation_created=True)
    [said] = await chat.store.timeline("ann", "id000001", after=0, before=None, limit=9)
    assert said.event == UserSaid("Hello there")
    await collected(reading)
    await chat.turns.settle()


async def test_the_dialogue_goes_on_where_it_was() -> None:
    chat = Chat(says("Two."), says("Four."))
    await chat.say("One?")
    await chat.say("Three?")
    sent = [message.content for message in chat.model.calls[1].messages]
    assert [text for text in sent if text in {"One?", "Two.", "Three?"}] == sent[1:3] + sent[-1:]


async def test_a_conversation_is_named_after_its_first_answer_and_never_again() -> None:
    chat = Chat()
    await chat.say("Plan my week with all of its appointments")
    await chat.say("And the next one")
    assert (await chat.store.meta("ann", "c1")).title == "Plan my week with all o…"


async def test_a_failed_turn_names_nothing() -> None:
    chat = Chat([ModelUnavailable("gone")], says("Hi"))
    await chat.say("First")
    assert (await chat.store.meta("ann", "c1")).title == ""
    await chat.say("Second")
    assert (await chat.store.meta("ann", "c1")).title == "Second"


async def test_a_name_that_cannot_be_stored_is_given_by_the_next_turn() -> None:
    chat = Chat()
    chat.store.away["set_title_if_empty"] = 1
    await chat.say("First")
    await chat.say("Second")
    assert (await chat.store.meta("ann", "c1")).title == "Second"


async def test_what_does_not_fit_is_an_error_event_with_its_reason() -> None:
    chat = Chat(window=50)
    last = (await chat.say("x" * 100))[-1].event
    assert isinstance(last, Failed)
    assert last.reason == "CONTEXT_BUDGET_EXCEEDED"


@pytest.mark.parametrize(
    ("script", "partial"),
    [
        ([ModelUnavailable("it went away")], []),
        (
            [ModelText("Hi"), ModelUnavailable("it went away")],
            [AssistantSaid("Hi", incomplete=True)],
        ),
    ],
)
async def test_a_model_that_fails_is_an_error_event_and_the_partial_answer_is_kept(
    script: list[Any], partial: list[AssistantSaid]
) -> None:
    chat = Chat(script)
    events = await chat.say()
    assert events[-1].event == Failed("MODEL_UNAVAILABLE", "it went away")
    assert sum(event.last for event in events) == 1
    assert await answers(chat) == partial
    assert len(chat.store.outbox.learnings) == 1


async def test_a_model_that_breaks_is_an_error_event_without_its_words() -> None:
    chat = Chat([ModelText("Hi"), RuntimeError("secret")])
    last = (await chat.say())[-1].event
    assert isinstance(last, Failed)
    assert last.reason == "INTERNAL"
    assert "secret" not in last.text


async def test_a_turn_that_cannot_begin_raises_and_is_no_turn() -> None:
    chat = Chat()
    chat.store.away["open"] = 1
    with pytest.raises(StoreUnavailable):
        await chat.say()
    assert chat.model.calls == []


async def test_an_end_that_is_not_stored_is_told_and_the_turn_is_closed_by_who_looks_later() -> (
    None
):
    chat = Chat(says("Hi"))
    chat.store.away["close"] = FOREVER
    last = (await chat.say())[-1].event
    assert isinstance(last, Failed)
    assert last.reason == "STORE_UNAVAILABLE"
    chat.clock.advance(60)
    assert isinstance((await chat.stored("id000001"))[-1].event, Failed)
    assert len(chat.store.outbox.learnings) == 1


# ---------------------------------------------------------------- leaving and cancelling


async def test_a_client_that_leaves_closes_the_model_call_and_the_partial_answer_is_kept() -> None:
    script, _ = held("a", "b", "c")
    chat = Chat(script)
    reading = chat.turns.run(command())
    turn_id = await begun(reading, deltas=3)
    await reading.aclose()
    await chat.turns.settle()
    [call] = chat.model.calls
    assert call.ended.is_set()
    assert not call.finished
    assert await answers(chat) == [AssistantSaid("abc", incomplete=True)]
    assert (await chat.stored(turn_id))[-1].event == Done("cancelled", incomplete=True)
    assert [learning.answer for learning in chat.store.outbox.learnings] == ["abc"]


async def test_a_client_that_leaves_at_once_leaves_no_turn_running() -> None:
    chat = Chat(says("a"))
    reading = chat.turns.run(command())
    await anext(reading)
    await reading.aclose()
    await chat.turns.settle()
    assert chat.model.calls == []
    assert (await chat.stored("id000001"))[-1].event == Done("cancelled", incomplete=True)


async def test_a_silent_store_does_not_hold_the_end_of_the_process() -> None:
    script, _ = held("a")
    chat = Chat(script)
    reading = chat.turns.run(command())
    await begun(reading)
    chat.store.gates["close"] = asyncio.Event()
    await reading.aclose()
    await chat.turns.settle(within=0.01)
    chat.store.gates["close"].set()
    await chat.turns.settle()
    assert await answers(chat) == [AssistantSaid("a", incomplete=True)]


async def test_after_a_cancelled_turn_without_an_answer_the_next_one_works() -> None:
    silent, _ = held()
    chat = Chat(silent, says("Hi"))
    reading = chat.turns.run(command("One"))
    for _ in range(3):
        await anext(reading)
    await reading.aclose()
    await chat.turns.settle()
    assert answer_of(await chat.say("Two")) == "Hi"
    dialogue = [m for m in chat.model.calls[-1].messages if m.role is not Role.SYSTEM]
    assert [message.content for message in dialogue] == ["One", "Two"]


async def test_cancel_stops_the_turn_and_keeps_what_was_said() -> None:
    script, _ = held("a")
    chat = Chat(script)
    reading = chat.turns.run(command())
    turn_id = await begun(reading)
    assert await chat.turns.cancel("ann", "c1", turn_id)
    assert (await anext(reading)).event == Done("cancelled", incomplete=True)
    await chat.turns.settle()
    assert await answers(chat) == [AssistantSaid("a", incomplete=True)]
    assert not await chat.turns.cancel("ann", "c1", turn_id)


async def test_a_turn_may_be_cancelled_through_another_process() -> None:
    script, _ = held("a")
    chat = Chat(script)
    reading = chat.turns.run(command())
    turn_id = await begun(reading)
    assert await chat.process().cancel("ann", "c1", turn_id)
    assert (await anext(reading)).event == Done("cancelled", incomplete=True)


async def test_the_turn_of_somebody_else_cannot_be_cancelled() -> None:
    script, go = held("a")
    chat = Chat(script)
    reading = chat.turns.run(command())
    turn_id = await begun(reading)
    with pytest.raises(TurnNotFound):
        await chat.turns.cancel("bob", "c1", turn_id)
    go.set()
    assert (await anext(reading)).event == Done("stop")


async def test_a_client_that_leaves_while_its_message_is_being_stored_leaves_a_closed_turn() -> (
    None
):
    chat = Chat()
    chat.store.gates["open"] = asyncio.Event()
    asking = asyncio.create_task(chat.say())
    await chat.store.called("open")
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    chat.store.gates["open"].set()
    await chat.turns.settle()
    del chat.store.gates["open"]
    again = await chat.say()
    assert kinds(again) == [Started, Done]
    assert chat.model.calls == []
    assert len(chat.store.outbox.learnings) == 1


async def test_a_client_that_leaves_a_repeated_or_refused_message_leaves_nothing() -> None:
    chat = Chat()
    await chat.say()
    for failing in (0, 1):
        chat.store.gates["open"] = asyncio.Event()
        chat.store.away["open"] = failing
        asking = asyncio.create_task(chat.say())
        await chat.store.called("open", chat.store.calls["open"] + 1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        chat.store.gates["open"].set()
        await chat.turns.settle()
    assert len(chat.model.calls) == 1
    assert len(chat.store.outbox.learnings) == 1


# ---------------------------------------------------------------- repeating


async def test_a_repeated_message_gives_the_same_events_without_a_second_model_call() -> None:
    chat = Chat(says("Hi"))
    first = await chat.say()
    again = await chat.say()
    assert [(event.seq, type(event.event)) for event in again] == [
        (event.seq, type(event.event)) for event in first
    ]
    assert answer_of(again) == "Hi"
    assert len(chat.model.calls) == 1
    assert len(await answers(chat)) == 1
    assert len(chat.store.outbox.learnings) == 1


async def test_a_message_may_be_repeated_while_its_turn_runs() -> None:
    script, go = held("a", "b")
    chat = Chat(script)
    first = chat.turns.run(command())
    await begun(first, deltas=2)
    second = asyncio.create_task(collected(chat.turns.run(command())))
    await chat.store.called("open", 2)
    go.set()
    rest = await collected(first)
    repeated = await second
    assert repeated[-1] == rest[-1]
    assert answer_of(repeated) == "ab"
    assert len(chat.model.calls) == 1


async def test_a_repeated_message_with_another_body_is_refused() -> None:
    chat = Chat()
    await chat.say("One", client_message_id="m")
    with pytest.raises(ClientMessageIdReused):
        await chat.say("Two", client_message_id="m")


async def test_the_same_message_id_of_another_user_is_another_message() -> None:
    chat = Chat()
    await chat.say("One", client_message_id="m")
    await chat.say("Two", client_message_id="m", user_id="bob")
    assert len(chat.model.calls) == 2


async def test_whoever_repeats_a_message_keeps_its_turn_running() -> None:
    script, go = held("a")
    chat = Chat(script)
    first = chat.turns.run(command())
    await begun(first)
    second = chat.turns.run(command())
    await anext(second)
    await first.aclose()
    go.set()
    assert (await collected(second))[-1].event == Done("stop")


# ---------------------------------------------------------------- one at a time


async def test_a_second_turn_waits_for_the_first() -> None:
    script, go = held("a")
    chat = Chat(script, says("b"), busy_wait=60.0)
    first = chat.turns.run(command("One"))
    await begun(first)
    second = asyncio.create_task(chat.say("Two"))
    await chat.store.called("open", 2)
    go.set()
    await collected(first)
    assert answer_of(await second) == "b"


async def test_a_second_turn_does_not_wait_for_ever() -> None:
    script, _ = held("a")
    chat = Chat(script)
    first = chat.turns.run(command("One"))
    await begun(first)
    with pytest.raises(TurnRunning):
        await chat.say("Two")
    await first.aclose()


async def test_a_turn_whose_process_died_is_closed_by_the_next_one() -> None:
    chat = Chat(busy_wait=60.0)
    await chat.store.open(new_turn("t0", now=chat.clock()))
    waiting = asyncio.create_task(chat.say())
    await chat.store.called("open", 2)
    chat.clock.advance(60)
    assert (await waiting)[-1].event == Done("stop", actual_prompt_tokens=11)
    assert isinstance((await chat.stored("t0"))[-1].event, Failed)


async def test_turns_of_different_conversations_run_side_by_side() -> None:
    script, go = held("a")
    chat = Chat(script, says("b"))
    first = chat.turns.run(command("One"))
    await begun(first)
    reading = chat.turns.run(command("Two", conversation_id="c2"))
    assert answer_of(await collected(reading)) == "b"
    go.set()
    await collected(first)


# ---------------------------------------------------------------- resuming


@pytest.mark.parametrize("after_seq", range(8))
async def test_a_finished_turn_may_be_resumed_after_any_event(after_seq: int) -> None:
    chat = Chat(says("He", "llo"))
    events = await chat.say()
    rest = await collected(chat.turns.resume("ann", "c1", "id000001", after_seq))
    assert [event.seq for event in rest] == [event.seq for event in events][after_seq:]


@pytest.mark.parametrize("here", [True, False])
async def test_a_running_turn_may_be_resumed_here_and_elsewhere(here: bool) -> None:  # noqa: FBT001
    script, go = held("a")
    chat = Chat(script)
    first = chat.turns.run(command())
    turn_id = await begun(first)
    process = chat.turns if here else chat.process()
    resumed = process.resume("ann", "c1", turn_id, 3)
    assert (await anext(resumed)).event == Delta("a")
    go.set()
    await collected(first)
    assert (await anext(resumed)).event == Done("stop")
    assert await collected(resumed) == []


async def test_an_event_that_was_sent_and_is_not_stored_yet_is_waited_for() -> None:
    script, go = held("a")
    chat = Chat(script, resume_poll=0.05)
    chat.store.away["append"] = 2
    first = chat.turns.run(command())
    turn_id = await begun(first)
    resumed = asyncio.create_task(collected(chat.process().resume("ann", "c1", turn_id, 4)))
    await chat.store.called("append", 3)
    go.set()
    await collected(first)
    assert [event.event for event in await resumed] == [Done("stop")]


async def test_an_event_that_a_finished_turn_never_had_is_refused() -> None:
    chat = Chat()
    last = (await chat.say())[-1]
    with pytest.raises(SeqNotReached):
        await collected(chat.turns.resume("ann", "c1", "id000001", last.seq + 1))


async def test_an_event_that_a_running_turn_does_not_reach_is_refused_in_the_end() -> None:
    script, go = held("a")
    chat = Chat(script)
    first = chat.turns.run(command())
    turn_id = await begun(first)
    with pytest.raises(SeqNotReached):
        await collected(chat.process().resume("ann", "c1", turn_id, 99))
    go.set()
    await collected(first)


@pytest.mark.parametrize(
    ("user_id", "conversation_id", "turn"),
    [("bob", "c1", ""), ("ann", "c2", ""), ("ann", "c1", "t9")],
)
async def test_a_turn_is_found_by_all_of_its_ids_only(
    user_id: str, conversation_id: str, turn: str
) -> None:
    script, go = held("a")
    chat = Chat(script)
    first = chat.turns.run(command())
    turn_id = await begun(first)
    with pytest.raises(TurnNotFound):
        await collected(chat.turns.resume(user_id, conversation_id, turn or turn_id, 0))
    go.set()
    assert (await collected(first))[-1].event == Done("stop")


async def test_a_client_that_comes_back_within_the_grace_finds_its_turn_running() -> None:
    script, go = held("a")
    chat = Chat(script, resume_grace=0.05)
    first = chat.turns.run(command())
    turn_id = await begun(first)
    await first.aclose()
    resumed = chat.turns.resume("ann", "c1", turn_id, 4)
    waiting = asyncio.create_task(collected(resumed))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    go.set()
    assert [event.event for event in await waiting] == [Done("stop")]
    await chat.turns.settle()
    assert await answers(chat) == [AssistantSaid("a", incomplete=False)]


async def test_a_client_that_comes_back_and_leaves_again_has_left() -> None:
    script, _ = held("a")
    chat = Chat(script, resume_grace=0.01)
    first = chat.turns.run(command())
    turn_id = await begun(first)
    await first.aclose()
    resumed = chat.turns.resume("ann", "c1", turn_id, 0)
    await anext(resumed)
    await resumed.aclose()
    await chat.turns.settle()
    assert await answers(chat) == [AssistantSaid("a", incomplete=True)]


# ---------------------------------------------------------------- shutting down


async def test_a_server_that_shuts_down_ends_its_turns_with_an_error_event() -> None:
    script, _ = held("a")
    chat = Chat(script)
    reading = chat.turns.run(command())
    await begun(reading)
    chat.turns.end_all(0)
    last = (await anext(reading)).event
    assert isinstance(last, Failed)
    assert last.reason == "SHUTTING_DOWN"
    await chat.turns.settle()
    assert await answers(chat) == [AssistantSaid("a", incomplete=True)]
    late = await chat.say("Too late")
    assert kinds(late) == [Started, Failed]


async def test_turns_may_finish_before_a_server_ends_them() -> None:
    script, go = held("a")
    chat = Chat(script)
    reading = chat.turns.run(command())
    await begun(reading)
    chat.turns.end_all(60)
    go.set()
    assert (await collected(reading))[-1].event == Done("stop")
    await chat.turns.settle()


async def test_settling_waits_until_turns_without_readers_are_closed() -> None:
    script, go = held("a")
    chat = Chat(script, resume_grace=60.0)
    reading = chat.turns.run(command())
    await begun(reading)
    await reading.aclose()
    settling = asyncio.create_task(chat.turns.settle())
    await chat.store.called("heartbeat", 2)
    assert not settling.done()
    go.set()
    await settling
    assert await answers(chat) == [AssistantSaid("a", incomplete=False)]


async def test_a_store_that_breaks_while_a_turn_is_open_is_an_error_event_too() -> None:
    chat = Chat()
    chat.store.broken["recent_messages"] = StoreUnavailable("db.internal:3306 does not answer")
    opened = await chat.say()
    told = "conversations cannot be read or stored now"
    assert opened[-1].event == Failed("STORE_UNAVAILABLE", told)
    assert isinstance(await chat.store.open(new_turn("t2", now=chat.clock())), TurnOpened)
