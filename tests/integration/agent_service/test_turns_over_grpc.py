"""Turns of the real service: races, repeats, streams, owners (A28, A31, A48, A63, A80, P20)."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from sqlalchemy.pool import QueuePool

from agent_service.v1 import agent_pb2 as pb
from tests.services.openai_server import DONE, HOLD, chunk, says, streams, text
from tests.services.running_agent import AgentServer, ServeAgent, answer_of, kinds, one

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ANN: dict[str, Any] = {"user_id": "ann", "conversation_id": "c1"}
BOB: dict[str, Any] = {"user_id": "bob", "conversation_id": "c1"}


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value.code()


async def test_a_turn_over_grpc_starts_remembers_assembles_speaks_and_ends(
    any_agent: AgentServer,
) -> None:
    events = await any_agent.chat()
    assert kinds(events) == [
        "started",
        "memory_used",
        "context_assembled",
        "delta",
        "delta",
        "usage",
        "done",
    ]
    assert [event.seq for event in events] == list(range(1, 8))
    assert kinds(await any_agent.timeline()) == [
        "user_text",
        "memory_used",
        "context_assembled",
        "assistant_text",
    ]
    meta = await any_agent.stub.GetConversationMeta(pb.GetConversationMetaRequest(**ANN))
    assert meta.conversation.message_count == 2


async def test_p20_the_report_of_the_stream_of_the_timeline_and_of_the_stats_is_one(
    any_agent: AgentServer,
) -> None:
    events = await any_agent.chat()
    report = one(events, "context_assembled")
    assert one(await any_agent.timeline(), "context_assembled") == report
    stats = await any_agent.stats()
    # The stats alone are of the time after the call, and know what the model counted.
    assert stats.last_report.actual_prompt_tokens == one(events, "done").actual_prompt_tokens == 11
    stats.last_report.ClearField("actual_prompt_tokens")
    assert stats.last_report == report
    assert stats.totals.turns == 1
    assert stats.totals.total_tokens == report.total_tokens <= report.usable


async def test_a28_first_chats_of_one_conversation_at_once_make_one_conversation(
    any_agent: AgentServer,
) -> None:
    messages = [f"Hello {number}" for number in range(4)]
    turns = await asyncio.gather(*(any_agent.chat(message) for message in messages))
    assert {kinds(events)[-1] for events in turns} == {"done"}
    created = [one(events, "started").conversation_created for events in turns]
    assert sorted(created) == [False, False, False, True]
    listed = await any_agent.stub.ListConversations(pb.ListConversationsRequest(user_id="ann"))
    assert [found.conversation_id for found in listed.conversations] == ["c1"]
    said = [event.user_text.text for event in await any_agent.timeline() if event.user_text.text]
    assert sorted(said) == messages


async def test_a28_the_loser_of_the_race_is_told_to_come_again(
    serve_agent: ServeAgent, database_knobs: dict[str, Any]
) -> None:
    async with serve_agent(busy_wait=0, **database_knobs) as agent:
        agent.model.scripts = [streams(text("Hi"), HOLD, chunk(finish="stop"), DONE)]
        calls = [agent.call(f"Hello {number}") for number in range(2)]
        firsts = await asyncio.gather(*(call.read() for call in calls), return_exceptions=True)
        (lost,) = [first for first in firsts if isinstance(first, grpc.aio.AioRpcError)]
        assert lost.code() is grpc.StatusCode.ABORTED
        agent.model.released.set()


async def test_a31_a_retry_after_a_deadline_is_the_same_turn(
    serve_agent: ServeAgent, database_knobs: dict[str, Any]
) -> None:
    async with serve_agent(resume_grace=60, **database_knobs) as agent:
        agent.model.scripts = [streams(text("Hi"), HOLD, chunk(finish="stop"), DONE)]
        repeated = {"client_message_id": "m1"}
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            async for _ in agent.call(timeout=0.05, **repeated):
                pass
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        agent.model.released.set()
        events = await agent.chat(**repeated)
        assert answer_of(events) == "Hi"
        assert kinds(events)[-1] == "done"
        happened = kinds(await agent.timeline())
        assert (happened.count("user_text"), happened.count("assistant_text")) == (1, 1)
        assert len(agent.model.calls) == 1
        assert await agent.to_learn() == 1


async def test_a31_a_retry_of_a_turn_that_its_deadline_ended_gives_that_end(
    any_agent: AgentServer,
) -> None:
    any_agent.model.scripts = [streams(text("Hi"), HOLD), says("never")]
    call = any_agent.call(client_message_id="m1")
    async for answer in call:
        if answer.event.WhichOneof("event") == "delta":
            call.cancel()
            break
    events = await any_agent.chat(client_message_id="m1")
    assert answer_of(events) == "Hi"
    assert one(events, "done").finish_reason == "cancelled"
    assert len(any_agent.model.calls) == 1
    said = one(await any_agent.timeline(), "assistant_text")
    assert (said.text, said.incomplete) == ("Hi", True)


async def test_a_repeated_client_message_id_streams_the_same_events_and_calls_nobody(
    any_agent: AgentServer,
) -> None:
    first = await any_agent.chat(client_message_id="m1")
    assert await any_agent.chat(client_message_id="m1") == first
    assert len(any_agent.model.calls) == 1
    assert len(any_agent.memory.asked) == 1
    assert await any_agent.to_learn() == 1
    another = any_agent.call("Something else", client_message_id="m1")
    assert await code_of(another.read()) is grpc.StatusCode.ALREADY_EXISTS


async def test_a48_ten_streams_share_two_connections_and_leave_them_to_readers(
    serve_agent: ServeAgent, database_knobs: dict[str, Any]
) -> None:
    async with serve_agent(database_pool=2, **database_knobs) as agent:
        agent.model.scripts = [streams(text("Hi"), HOLD, chunk(finish="stop"), DONE)]
        begun = 0

        async def chat(number: int) -> str:
            nonlocal begun
            events = []
            async for answer in agent.call(conversation_id=f"c{number}"):
                events.append(answer.event)
                begun += answer.event.WhichOneof("event") == "delta"
            return answer_of(events)

        chats = [asyncio.create_task(chat(number)) for number in range(10)]
        pool = agent.app._database.engine.pool
        assert isinstance(pool, QueuePool)
        assert pool.size() == 2
        # between two writes none is checked out, though all ten stream
        while begun < len(chats) or pool.checkedout():  # noqa: ASYNC110 — a pool has no event
            await asyncio.sleep(0.01)
        assert kinds(await agent.timeline("ann", "c7")) == ["user_text"]
        assert not any(one.done() for one in chats)
        agent.model.released.set()
        assert await asyncio.gather(*chats) == ["Hi"] * 10


async def test_a63_a_client_that_leaves_before_the_first_word_spoils_no_later_turn(
    any_agent: AgentServer,
) -> None:
    model = any_agent.model
    model.scripts = [streams(HOLD), says("Hi")]
    call = any_agent.call("One")
    await call.read()
    assert await asyncio.to_thread(model.asked.wait, 60)
    call.cancel()
    assert await asyncio.to_thread(model.calls[0].ended.wait, 60)
    assert model.calls[0].closed_early
    assert answer_of(await any_agent.chat("Two")) == "Hi"
    assert [message["content"] for message in any_agent.prompt[1:]] == ["One", "Two"]


async def test_a_conversation_of_another_user_is_nowhere_to_be_found(
    any_agent: AgentServer,
) -> None:
    stub = any_agent.stub
    turn_id = one(await any_agent.chat("A secret"), "started").turn_id
    turn = {**BOB, "turn_id": turn_id}
    for call in (
        stub.GetConversationMeta(pb.GetConversationMetaRequest(**BOB)),
        stub.GetConversationTimeline(pb.GetConversationTimelineRequest(**BOB)),
        stub.GetContextStats(pb.GetContextStatsRequest(**BOB)),
        stub.ResumeChat(pb.ResumeChatRequest(**turn)).read(),
        stub.CancelChat(pb.CancelChatRequest(request_id="r1", **turn)),
    ):
        assert await code_of(call) is grpc.StatusCode.NOT_FOUND
    assert not (
        await stub.ListConversations(pb.ListConversationsRequest(user_id="bob"))
    ).conversations

    # Chatting under that id begins a conversation of bob's own.
    events = await any_agent.chat("Hello from bob", user_id="bob")
    assert one(events, "started").conversation_created
    assert "A secret" not in str(any_agent.prompt)
    assert one(await any_agent.timeline("bob"), "user_text").text == "Hello from bob"
    assert one(await any_agent.timeline("ann"), "user_text").text == "A secret"


async def test_a80_events_of_one_instant_page_in_order_in_both_directions(
    serve_agent: ServeAgent, database_knobs: dict[str, Any]
) -> None:
    async with serve_agent(clock=lambda: NOON, **database_knobs) as agent:
        for message in ("One", "Two"):
            await agent.chat(message)
        everything = await agent.timeline()
        assert {event.create_time.ToDatetime(UTC) for event in everything} == {NOON}
        assert [event.seq for event in everything] == list(range(1, 9))

        async def pages(*, from_end: bool) -> list[list[int]]:
            found: list[list[int]] = []
            token = ""
            while True:
                request = pb.GetConversationTimelineRequest(
                    **ANN, page_size=3, page_token=token, from_end=from_end
                )
                page = await agent.stub.GetConversationTimeline(request)
                found.append([event.seq for event in page.events])
                token = page.previous_page_token if from_end else page.next_page_token
                if not token:
                    return found

        assert await pages(from_end=False) == [[1, 2, 3], [4, 5, 6], [7, 8]]
        assert await pages(from_end=True) == [[6, 7, 8], [3, 4, 5], [1, 2]]
