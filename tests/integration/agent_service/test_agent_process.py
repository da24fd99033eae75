"""`python -m agent_service serve` at SIGTERM, in the middle of turns (A56)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from agent_service.v1 import agent_pb2 as pb
from agent_service.v1 import agent_pb2_grpc
from rpc.errors import read_failure
from tests.e2e.processes import CLOSED, Program, poll
from tests.services.openai_server import (
    DONE,
    HOLD,
    OpenAIServer,
    chunk,
    openai_server,
    role,
    streams,
    text,
)
from tests.services.running_agent import answer_of, kinds, one

SPEAKS_AND_WAITS = streams(
    role(), text("Cast "), text("off "), HOLD, text("now"), chunk(finish="stop"), DONE
)


@contextmanager
def agent_program(folder: Path, model: OpenAIServer, **knobs: str) -> Iterator[Program]:
    """Serve on SQLite, without any memory service."""
    chosen = {
        "AGENT_DATA_DIR": str(folder),
        "AGENT_LLM_BASE_URL": model.base_url,
        "AGENT_LLM_MODEL": "scripted",
        "AGENT_MEMORY_TARGET": CLOSED,
        **knobs,
    }
    program = Program("agent_service", "AGENT_LISTEN", chosen, folder)
    try:
        program.start()
        yield program
    finally:
        program.clear()


@contextmanager
def stub_of(program: Program) -> Iterator[Any]:
    with grpc.insecure_channel(program.address) as channel:
        yield agent_pb2_grpc.AgentServiceStub(channel)


def chat_request(conversation_id: str = "c1") -> pb.ChatRequest:
    return pb.ChatRequest(
        user_id="ann",
        conversation_id=conversation_id,
        client_message_id=f"m-{conversation_id}",
        message="What do we do?",
    )


def said(stub: Any) -> Any:
    """Give what the assistant said, as stored."""
    request = pb.GetConversationTimelineRequest(user_id="ann", conversation_id="c1")
    return one(stub.GetConversationTimeline(request).events, "assistant_text")


def until_it_speaks(call: Any) -> list[pb.ChatEvent]:
    """Read until the second delta."""
    events: list[pb.ChatEvent] = []
    while answer_of(events) != "Cast off ":
        events.append(next(call).event)
    return events


def refused(stub: Any) -> Any:
    """Try a new turn, and give what it is refused with; None: it is not."""
    try:
        list(stub.Chat(chat_request("c2")))
    except grpc.RpcError as error:
        return read_failure(error)
    return None


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with openai_server(SPEAKS_AND_WAITS) as running:
        yield running


def test_a_turn_past_the_grace_ends_with_an_error_event_and_is_kept_as_incomplete(
    tmp_path: Path, model: OpenAIServer
) -> None:
    with agent_program(tmp_path, model, AGENT_SHUTDOWN_GRACE="1") as program:
        with stub_of(program) as stub:
            call = stub.Chat(chat_request())
            events = until_it_speaks(call)
            program.process.terminate()
            # The RPC ends well, with the turn's own last event: nothing was torn.
            events += [answer.event for answer in call]
            assert kinds(events)[-2:] == ["delta", "error"]
            assert one(events, "error").reason == "SHUTTING_DOWN"
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert program.process.wait(30) == 0
        # It let go of the model, which would have held it for minutes.
        assert model.calls[0].ended.wait(30)
        assert model.calls[0].closed_early
        program.start()
        with stub_of(program) as stub:
            kept = said(stub)
            assert (kept.text, kept.incomplete) == ("Cast off ", True)
            # Its end is the turn's for ever: a repeated message tells it again.
            assert [answer.event for answer in stub.Chat(chat_request())] == events


def test_a_turn_within_the_grace_finishes_while_new_ones_are_refused(
    tmp_path: Path, model: OpenAIServer
) -> None:
    with agent_program(tmp_path, model, AGENT_SHUTDOWN_GRACE="60") as program:
        with stub_of(program) as stub:
            call = stub.Chat(chat_request())
            events = until_it_speaks(call)
            begun = time.monotonic()
            program.process.terminate()
            failure = poll(lambda: refused(stub), lambda found: found is not None)
            assert failure.code is grpc.StatusCode.UNAVAILABLE
            model.released.set()
            events += [answer.event for answer in call]
            assert answer_of(events) == "Cast off now"
            assert kinds(events)[-1] == "done"
        assert program.process.wait(55) == 0
        assert time.monotonic() - begun < 60  # it did not wait for the end of the grace
        program.start()
        with stub_of(program) as stub:
            assert (said(stub).text, said(stub).incomplete) == ("Cast off now", False)


def test_a_turn_without_its_client_does_not_outlive_the_grace(
    tmp_path: Path, model: OpenAIServer
) -> None:
    """AGENT_RESUME_GRACE is for a client that comes back, and not to a server that goes."""
    knobs = {"AGENT_SHUTDOWN_GRACE": "1", "AGENT_RESUME_GRACE": "3600"}
    with agent_program(tmp_path, model, **knobs) as program:
        with stub_of(program) as stub:
            call = stub.Chat(chat_request())
            until_it_speaks(call)
            call.cancel()
            assert not model.calls[0].closed_early
            assert program.stop() == 0
        program.start()
        with stub_of(program) as stub:
            assert (said(stub).text, said(stub).incomplete) == ("Cast off ", True)
