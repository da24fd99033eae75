"""`agent-service relay` beside `serve`, killed in the middle of a delivery."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_service.v1 import agent_pb2 as pb
from tests.e2e.processes import poll
from tests.integration.agent_service.test_agent_process import agent_program, stub_of
from tests.services.held_memory import HeldMemory, held_memory
from tests.services.mariadb import free_port
from tests.services.openai_server import OpenAIServer, openai_server, says
from tests.services.running_agent import one


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with openai_server(says("Hi")) as running:
        yield running


@pytest.fixture
def memory() -> Iterator[HeldMemory]:
    with held_memory() as running:
        yield running


def metric(port: int, name: str) -> float | None:
    """Give a metric of a relay; None: it does not tell it yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
    except OSError:
        return None
    found = [line for line in lines if line.startswith(f"{name} ")]
    return float(found[0].split()[1]) if found else None


def chat(stub: Any, message: str) -> str:
    """Say something and give the turn_id."""
    request = pb.ChatRequest(user_id="ann", client_message_id=message, message=message)
    events = [answer.event for answer in stub.Chat(request)]
    return str(one(events, "started").turn_id)


def test_a49_a_relay_killed_while_it_delivers_loses_nothing_and_doubles_nothing(
    tmp_path: Path, model: OpenAIServer, memory: HeldMemory
) -> None:
    port = free_port()
    knobs = {
        "AGENT_MEMORY_TARGET": memory.address,
        "AGENT_RELAY": "off",
        "AGENT_RELAY_LEASE": "5",
        "AGENT_METRICS_LISTEN": "",
    }
    with agent_program(tmp_path, model, **knobs) as program, stub_of(program) as stub:
        said = [chat(stub, f"n{number}") for number in range(3)]
        relay = program.spawn("relay")
        try:
            memory.until_told(1)
            relay.kill()
            relay.wait(30)
            before = len(memory.told)
            relay = program.spawn("relay", AGENT_METRICS_LISTEN=f"127.0.0.1:{port}")
            memory.until_told(before + 1)  # the lease of the first one is over
            # It is held, and all wait.
            assert poll(lambda: metric(port, "agent_outbox_pending"), lambda n: n == 3) == 3
            assert (metric(port, "agent_outbox_lag_seconds") or 0) > 0
            memory.released.set()
            assert poll(lambda: metric(port, "agent_outbox_pending"), lambda n: n == 0) == 0
            assert metric(port, "agent_outbox_parked") == 0
            relay.terminate()
            assert relay.wait(30) == 0
        finally:
            relay.kill()
            relay.wait(30)
    told = [turn.turn_id for turn in memory.told]
    assert list(dict.fromkeys(told)) == said
    # Doubles are the same request, and come before anything later.
    assert told == sorted(told, key=said.index)
    assert len({turn.SerializeToString(deterministic=True) for turn in memory.told}) == 3
    assert [turn.request_id for turn in memory.told] == told
