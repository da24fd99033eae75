"""Turns reach the memory service: whole, once, in order, whatever it says and however long."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from agent_service.adapters.memory_client import MemoryClient
from agent_service.domain.errors import MemoryUnavailable, TurnRefused
from memory_service.v1 import memory_pb2 as pb
from rpc.channel import open_channel
from rpc.errors import Failure, Violation
from tests.builders.learning import to_learn
from tests.services.mariadb import free_port
from tests.services.openai_server import HOLD, OpenAIServer, event, role, says, streams, text
from tests.services.running_agent import AgentServer, ServeAgent, one, recalled
from tests.services.scripted_agent import Scripted, scripted_memory, serving_scripted

Memory = tuple[Scripted, str]
Code = grpc.StatusCode


def told(memory: Scripted) -> list[pb.IngestTurnRequest]:
    return [request for name, request in memory.asked if name == "IngestTurn"]


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what another server does."""
    while not is_so():  # noqa: ASYNC110 — it has no event
        await asyncio.sleep(0.02)


async def until_nothing_waits(agent: AgentServer) -> None:
    while await agent.to_learn():  # noqa: ASYNC110 — a table has no event
        await asyncio.sleep(0.02)


async def until_told(agent: AgentServer, turns: int) -> list[pb.IngestTurnRequest]:
    """Run the relay until so many turns were told and nothing waits any more."""
    async with agent.app.relaying.running():
        await until(lambda: len(told(agent.memory)) >= turns)
        await until_nothing_waits(agent)
    return told(agent.memory)


# ------------------------------------------------------------ what is told


async def test_a_turn_is_told_as_it_was_said(any_agent: AgentServer, model: OpenAIServer) -> None:
    model.scripts = [says("In Oslo ", "it rains 🌧")]
    events = await any_agent.chat("Since May I live in Oslo.", timezone="Europe/Oslo")
    (request,) = await until_told(any_agent, 1)
    turn_id = one(events, "started").turn_id
    assert (request.user_id, request.conversation_id) == ("ann", "c1")
    assert (request.turn_id, request.request_id) == (turn_id, turn_id)
    assert [(said.role, said.content, said.timezone) for said in request.messages] == [
        (pb.MESSAGE_ROLE_USER, "Since May I live in Oslo.", "Europe/Oslo"),
        (pb.MESSAGE_ROLE_ASSISTANT, "In Oslo it rains 🌧", "Europe/Oslo"),
    ]
    stored = [event.create_time for event in await any_agent.timeline()]
    assert request.messages[0].create_time == stored[0]


async def test_a24_what_was_recalled_is_never_learnt_again(agent: AgentServer) -> None:
    agent.memory.answers["Retrieve"] = recalled(fact="Ann keeps bees", constraint="No peanuts")
    agent.model.scripts = [says("Nice.")]
    for _ in range(5):
        await agent.chat("What do I do on Sundays?")
        assert "Ann keeps bees" in str(agent.prompt)
    requests = await until_told(agent, 5)
    assert len(requests) == 5
    assert "bees" not in str(requests)
    assert "peanuts" not in str(requests)
    # and nothing of what was said before, which has been told already
    assert {len(request.messages) for request in requests} == {2}


async def test_what_a_user_said_in_a_turn_that_failed_is_told(agent: AgentServer) -> None:
    agent.model.scripts = [
        streams(role(), text("Half a"), event({"error": {"message": "overloaded"}}))
    ]
    events = await agent.chat("I am allergic to nuts.")
    assert one(events, "error")
    (request,) = await until_told(agent, 1)
    assert [said.content for said in request.messages] == ["I am allergic to nuts.", "Half a"]


async def test_a65_a_turn_whose_client_left_is_told_with_what_was_said_until_then(
    agent: AgentServer,
) -> None:
    agent.model.scripts = [streams(role(), text("Once upon"), HOLD)]
    call = agent.call("I like long stories.")
    async for answer in call:
        if answer.event.WhichOneof("event") == "delta":
            break
    call.cancel()
    (request,) = await until_told(agent, 1)
    assert [said.content for said in request.messages] == ["I like long stories.", "Once upon"]


async def test_a31_a_repeated_message_is_told_once(agent: AgentServer) -> None:
    agent.model.scripts = [says("Hi")]
    for _ in range(3):
        await agent.chat("Hello", client_message_id="same")
    assert len(await until_told(agent, 1)) == 1
    assert len(told(agent.memory)) == 1


async def test_an_answer_longer_than_memory_takes_is_cut(agent: AgentServer) -> None:
    agent.model.scripts = [says("字" * 20_000)]
    await agent.chat("Tell me all")
    (request,) = await until_told(agent, 1)
    assert request.messages[1].content == "字" * (32 * 1024 // 3)


# ------------------------------------------------------------ memory is away


async def test_an_outage_loses_nothing_doubles_nothing_and_keeps_the_order(
    serve_agent: ServeAgent, database_knobs: dict[str, Any], model: OpenAIServer
) -> None:
    address = f"127.0.0.1:{free_port()}"
    memory = scripted_memory()
    model.scripts = [says("Hi")]
    knobs = {"memory_target": address, "recall_timeout": 0.05, **database_knobs}
    async with serve_agent(**knobs) as agent, agent.app.relaying.running():
        said = []
        for number in range(6):
            user, conversation = f"u{number % 2}", f"c{number % 3}"
            events = await agent.chat(f"n{number}", user_id=user, conversation_id=conversation)
            said.append((user, one(events, "started").turn_id))
        assert await agent.to_learn() == 6
        async with serving_scripted(memory, listen=address):
            await until_nothing_waits(agent)
        requests = told(memory)
        for user in ("u0", "u1"):
            mine = [request.turn_id for request in requests if request.user_id == user]
            assert mine == [turn_id for name, turn_id in said if name == user]
        assert len({request.request_id for request in requests}) == len(requests) == 6


async def test_an_older_memory_service_is_waited_for(agent: AgentServer) -> None:
    agent.memory.answers["IngestTurn"] = Failure(Code.UNIMPLEMENTED, "NOT_IMPLEMENTED", "later")
    agent.model.scripts = [says("Hi")]
    await agent.chat("Hello")
    async with agent.app.relaying.running():
        await until(lambda: bool(told(agent.memory)))
        del agent.memory.answers["IngestTurn"]
        await until(lambda: len(told(agent.memory)) == 2)
        await until_nothing_waits(agent)
    first, second = told(agent.memory)
    assert first == second


# ------------------------------------------------------------ what memory answers


async def learnt(memory: Memory, answer: Any) -> None:
    scripted, address = memory
    scripted.answers["IngestTurn"] = answer
    async with open_channel(address) as channel:
        await MemoryClient(channel, cut="gate").learn(to_learn(), within=5.0)


@pytest.mark.parametrize(
    "code",
    [
        Code.UNAVAILABLE,
        Code.RESOURCE_EXHAUSTED,
        Code.CANCELLED,
        Code.DEADLINE_EXCEEDED,
        Code.UNAUTHENTICATED,
        Code.PERMISSION_DENIED,
        Code.UNIMPLEMENTED,
    ],
)
async def test_what_would_fail_for_any_turn_is_an_outage(memory: Memory, code: Code) -> None:
    with pytest.raises(MemoryUnavailable, match=f"^{code.name.lower()}$"):
        await learnt(memory, Failure(code, "ANY", "text"))


async def test_what_is_wrong_with_one_turn_is_a_refusal_that_names_fields_only(
    memory: Memory,
) -> None:
    wrong = (Violation("messages[0].content", "must not say I am vegan"),)
    failure = Failure(Code.INVALID_ARGUMENT, "INVALID_FIELD", "I am vegan", violations=wrong)
    with pytest.raises(TurnRefused) as refusal:
        await learnt(memory, failure)
    assert str(refusal.value) == "INVALID_ARGUMENT INVALID_FIELD messages[0].content"


@pytest.mark.parametrize("code", [Code.ALREADY_EXISTS, Code.INTERNAL, Code.FAILED_PRECONDITION])
async def test_what_else_a_server_says_is_about_the_turn(memory: Memory, code: Code) -> None:
    with pytest.raises(TurnRefused, match=code.name):
        await learnt(memory, Failure(code, code.name, "text"))


async def test_a_memory_that_hangs_is_an_outage_after_the_time_given(memory: Memory) -> None:
    scripted, address = memory
    scripted.answers["IngestTurn"] = 3600.0
    async with open_channel(address) as channel:
        with pytest.raises(MemoryUnavailable, match="deadline_exceeded"):
            await MemoryClient(channel, cut="gate").learn(to_learn(), within=0.05)


async def test_a_wrong_token_is_no_fault_of_a_turn() -> None:
    async with (
        serving_scripted(scripted_memory(), token="right") as server,
        open_channel(server.address, service_token="wrong") as channel,
    ):
        with pytest.raises(MemoryUnavailable, match="unauthenticated"):
            await MemoryClient(channel, cut="gate").learn(to_learn(), within=5.0)
