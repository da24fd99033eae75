"""Turns over real SQL and a real HTTP model: what is held while a model streams, and what is left.

The rest of what turns promise is shown on fakes, in tests/unit/agent_service/test_turns.py.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from sqlalchemy.pool import QueuePool

from agent_service.adapters.model_openai import ModelEndpoint, OpenAIModel
from agent_service.adapters.sql.conversations import SqlConversationStore
from agent_service.adapters.sql.turns import SqlTurnStore
from agent_service.chat import ChatTurns, Pace, Reply, TurnSettings
from agent_service.domain.model import Delta, Done, Failed, Started
from agent_service.handlers.failures import failed_turn
from agent_service.ports import AssistantSaid
from database.access import Database
from rpc.ids import new_id, utc_now
from tests.builders.chatting import CHARACTERS, answer_of, command, reply_settings
from tests.fakes.memory_port import FakeMemory
from tests.services.openai_server import (
    DONE,
    HOLD,
    OpenAIServer,
    chunk,
    event,
    openai_server,
    says,
    streams,
    text,
)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


@pytest.fixture
async def turns(database: Database, server: OpenAIServer) -> AsyncIterator[ChatTurns]:
    conversations = SqlConversationStore(database)
    model = OpenAIModel(ModelEndpoint(base_url=server.base_url, model="m", attempts=1))
    reply = Reply(conversations, FakeMemory(), model, CHARACTERS, reply_settings())
    store = SqlTurnStore(database, new_id, owner="test", lease=timedelta(seconds=30))
    settings = TurnSettings(
        pace=Pace(heartbeat=1.0, event_batch=0.05),
        explain=failed_turn,
        busy_wait=2.0,
        resume_grace=0.0,
        resume_poll=0.05,
        title_characters=24,
    )
    turns = ChatTurns(store, conversations, reply, settings, utc_now, new_id)
    yield turns
    turns.end_all(0)
    await turns.settle()
    await model.close()


async def said(database: Database) -> list[AssistantSaid]:
    timeline = await SqlConversationStore(database).timeline(
        "ann", "c1", after=0, before=None, limit=99
    )
    return [kept.event for kept in timeline if isinstance(kept.event, AssistantSaid)]


async def test_no_connection_is_held_while_models_stream(
    database: Database, turns: ChatTurns, server: OpenAIServer
) -> None:
    server.scripts = [streams(text("Hi"), HOLD, chunk(finish="stop"), DONE)]
    begun = 0

    async def chat(number: int) -> str:
        nonlocal begun
        events = []
        async for one in turns.run(command(f"Hello {number}", conversation_id=f"c{number}")):
            events.append(one)
            begun += isinstance(one.event, Delta)
        return answer_of(events)

    chats = [asyncio.create_task(chat(number)) for number in range(10)]
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    # more streams than connections; between two writes none is checked out
    while begun < len(chats) or pool.checkedout():  # noqa: ASYNC110 — a pool has no event
        await asyncio.sleep(0.01)
    timeline = await SqlConversationStore(database).timeline(
        "ann", "c1", after=0, before=None, limit=9
    )
    assert len(timeline) == 1
    server.released.set()
    assert await asyncio.gather(*chats) == ["Hi"] * 10


async def test_a_client_that_leaves_closes_the_http_call_and_the_partial_answer_is_kept(
    database: Database, turns: ChatTurns, server: OpenAIServer
) -> None:
    server.scripts = [streams(text("a"), text("b"), text("c"), HOLD)]
    reading = turns.run(command())
    deltas = 0
    async for one in reading:
        deltas += isinstance(one.event, Delta)
        if deltas == 3:
            break
    await reading.aclose()
    await turns.settle()
    assert await asyncio.to_thread(server.calls[0].ended.wait, 60)
    assert server.calls[0].closed_early
    assert await said(database) == [AssistantSaid("abc", incomplete=True)]


async def test_a_turn_cancelled_before_its_first_word_spoils_no_later_one(
    database: Database, turns: ChatTurns, server: OpenAIServer
) -> None:
    server.scripts = [streams(HOLD), says("Hi")]
    reading = turns.run(command("One"))
    started = (await anext(reading)).event
    assert isinstance(started, Started)
    assert await asyncio.to_thread(server.asked.wait, 60)
    assert await turns.cancel("ann", "c1", started.turn_id)
    assert [one.event async for one in reading][-1] == Done("cancelled", incomplete=True)
    second = [one async for one in turns.run(command("Two"))]
    assert answer_of(second) == "Hi"
    sent = server.calls[-1].body["messages"]
    assert [message["content"] for message in sent[1:]] == ["One", "Two"]
    assert await said(database) == [AssistantSaid("Hi", incomplete=False)]


async def test_a_provider_that_breaks_off_is_told_in_our_words(
    database: Database, turns: ChatTurns, server: OpenAIServer
) -> None:
    broken = event({"error": {"message": "secret host 10.0.0.1", "type": "server_error"}})
    server.scripts = [streams(text("Hi"), broken)]
    last = [one.event async for one in turns.run(command())][-1]
    assert last == Failed("MODEL_UNAVAILABLE", "the model broke its answer off, server_error")
    assert await said(database) == [AssistantSaid("Hi", incomplete=True)]
