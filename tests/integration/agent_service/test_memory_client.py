"""The memory service as the agent's client meets it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from agent_service.adapters.memory_client import MemoryClient
from agent_service.domain.errors import MemoryUnavailable
from agent_service.domain.model import RecallQuery
from tests.builders.learning import to_learn

QUERY = RecallQuery(user_id="ann", conversation_id="c1", text="tea")


@asynccontextmanager
async def client_of(answer: bytes) -> AsyncIterator[MemoryClient]:
    """Give a client of a server that answers every call with these bytes."""

    async def say(_request: bytes, _context: object) -> bytes:
        return answer

    server = grpc.aio.server()
    handlers: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(say) for name in ("Retrieve", "IngestTurn")
    }
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("memory_service.v1.MemoryService", handlers),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield MemoryClient(channel, cut="gate")
    finally:
        await server.stop(0)


async def test_an_answer_that_does_not_parse_is_memory_being_away_and_no_failed_turn() -> None:
    async with client_of(b"\xff\xff\xff") as client:
        recall = await client.recall(QUERY, within=5.0)
    assert recall.degraded
    assert {(source.state, source.reason) for source in recall.sources} == {
        ("failed", "unreadable")
    }


async def test_legs_and_states_of_a_newer_server_are_words_that_say_nothing() -> None:
    # sources { leg: 99 state: 99 }
    async with client_of(bytes([0x12, 0x04, 0x08, 99, 0x10, 99])) as client:
        recall = await client.recall(QUERY, within=5.0)
    assert [(source.leg, source.state) for source in recall.sources] == [("", "")]


async def test_an_unreadable_answer_to_a_turn_is_an_outage_since_it_may_not_be_stored() -> None:
    async with client_of(b"\xff\xff\xff") as client:
        with pytest.raises(MemoryUnavailable, match="unreadable"):
            await client.learn(to_learn(), within=5.0)
