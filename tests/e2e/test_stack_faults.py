"""Chats while memory, the model, the agent or the client fails: told as it is, and soon well."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.people import Person, Turn, person_at
from tests.e2e.processes import Program, memory_program, poll
from tests.e2e.stack_process import GatewayProgram, state
from tests.services.mariadb import free_port
from tests.services.openai_server import (
    HOLD,
    Call,
    OpenAIServer,
    Script,
    openai_server,
    role,
    says,
    streams,
    text,
)

INSTRUCTIONS = "You are the harbour master. End each answer with the word ahoy."
RULE = "User is allergic to peanuts."
ANSWER = says("As you ", "wish, ", "ahoy")


class Model:
    """A scripted model that may be away, always at the same address."""

    def __init__(self) -> None:
        self._port = free_port()
        self._up = ExitStack()
        self.server: OpenAIServer
        self.base_url = f"http://127.0.0.1:{self._port}/v1"

    def come(self) -> None:
        self.server = self._up.enter_context(openai_server(ANSWER, port=self._port))

    def go(self) -> None:
        self._up.close()

    @contextmanager
    def answering(self, script: Script) -> Iterator[None]:
        """Answer with this script only."""
        self.server.scripts = [script]
        try:
            yield
        finally:
            self.server.scripts = [ANSWER]

    @property
    def last_call(self) -> Call:
        return self.server.calls[-1]


@dataclass(frozen=True)
class Services:
    memory: Program
    agent: Program
    gateway: Program
    model: Model


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """The three on the embedded default, with a model."""
    folder = tmp_path_factory.mktemp("faults")
    model = Model()
    with memory_program(folder) as memory:
        knobs = {
            "AGENT_DATA_DIR": str(folder),
            "AGENT_MEMORY_TARGET": memory.address,
            "AGENT_LLM_BASE_URL": model.base_url,
            "AGENT_LLM_MODEL": "scripted",
            "AGENT_SYSTEM_PROMPT": INSTRUCTIONS,
            "AGENT_BUSY_WAIT": "0.1",
            "AGENT_LEASE": "3",
            "AGENT_SWEEP_INTERVAL": "0.5",
        }
        agent = Program("agent_service", "AGENT_LISTEN", knobs, folder)
        gateway = GatewayProgram(agent.address, memory.address, folder)
        model.come()
        try:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda program: program.start(), (memory, agent, gateway)))
            yield Services(memory, agent, gateway, model)
        finally:
            for program in (gateway, agent):
                program.clear()
            model.go()


@pytest.fixture
def person(services: Services) -> Iterator[Person]:
    """Give somebody whom all services reach: what was away is tried again within 3 s."""
    with person_at(services.gateway.address) as person:
        poll(person.reaches_memory, bool)
        person.chat_when_well("hello")
        yield person


def assert_goes_on_without_memory(turn: Turn, reason: str) -> None:
    """Check that the turn says that memory failed, before its answer, and is whole else."""
    assert turn.memory["degraded"]
    assert turn.memory["items"] == []
    assert turn.reasons() == {reason}
    assert {source["state"] for source in turn.memory["sources"]} == {"SOURCE_STATE_FAILED"}
    order = [kind for kind in turn.kinds if kind in {"memory_used", "context_assembled", "delta"}]
    assert order[:3] == ["memory_used", "context_assembled", "delta"]
    assert "constraints" not in turn.components
    assert turn.kinds[-1] == "done"
    assert turn.text == "As you wish, ahoy"


# ------------------------------------------------------------ the path of a chat


def test_instructions_and_memories_both_reach_the_model(services: Services, person: Person) -> None:
    person.remember(RULE, "CONSTRAINT")
    turn = person.chat_when_well("What may I have for dinner?")
    assert turn.text == "As you wish, ahoy"
    assert turn.one("done")["actual_prompt_tokens"] == 11
    messages = services.model.last_call.body["messages"]
    system = "\n".join(one["content"] for one in messages if one["role"] == "system")
    assert INSTRUCTIONS in system
    assert RULE in system
    assert messages[-1] == {"role": "user", "content": "What may I have for dinner?"}


# ------------------------------------------------------------ memory fails


def test_a_chat_goes_on_while_memory_is_killed_and_remembers_when_it_is_back(
    services: Services, person: Person
) -> None:
    person.remember(RULE, "CONSTRAINT")
    services.memory.kill()
    try:
        turn = person.chat("What may I have for dinner?")
        assert_goes_on_without_memory(turn, "unavailable")
    finally:
        services.memory.start()
    turn = person.chat_when_well("What may I have for dinner?")
    assert turn.memory_types == {"CONSTRAINT"}
    assert RULE in str(services.model.last_call.body["messages"])


def test_a_chat_goes_on_while_memory_hangs_and_remembers_when_it_goes_on(
    services: Services, person: Person
) -> None:
    person.remember(RULE, "CONSTRAINT")
    pid = services.memory.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        turn = person.chat("What may I have for dinner?")
        assert state(pid) == "T"  # it hung until the turn was over
        assert_goes_on_without_memory(turn, "timeout")
        assert {source["elapsed"] for source in turn.memory["sources"]} == {"0.800s"}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert person.chat_when_well("What may I have for dinner?").memory_types == {"CONSTRAINT"}


# ------------------------------------------------------------ the client leaves


def test_a_client_that_leaves_closes_the_model_call_and_keeps_what_was_said(
    services: Services, person: Person
) -> None:
    pieces = ["Cast ", "off ", "the "]
    script = streams(role(), *(text(piece) for piece in pieces), HOLD)
    with services.model.answering(script), person.listening("What do we do?") as lines:
        conversation = _after_deltas(lines, len(pieces))
    call = services.model.last_call
    assert call.ended.wait(60)
    assert call.closed_early

    def answers() -> list[Any]:
        events = person.timeline(conversation)
        return [event["assistant_text"] for event in events if "assistant_text" in event]

    said = poll(answers, lambda found: found)
    assert said == [{"text": "Cast off the ", "incomplete": True}]
    turn = person.chat("Go on.", conversation_id=conversation)
    assert turn.kinds[-1] == "done"


def _after_deltas(lines: Iterator[str], count: int) -> str:
    """Read so many deltas, and give the conversation's id."""
    conversation, heard = "", 0
    for line in lines:
        if line.startswith("id: "):
            conversation = line.removeprefix("id: ").split("/")[0]
        heard += line == "event: delta"
        if heard == count and line.startswith("data: "):
            return conversation
    message = "the stream ended"
    raise AssertionError(message)


# ------------------------------------------------------------ the model fails


def test_an_unreachable_model_is_an_error_event(services: Services, person: Person) -> None:
    closing = replace(ANSWER, headers={"Connection": "close"})
    with services.model.answering(closing):  # or its last connection would stay open
        assert person.chat("hello").kinds[-1] == "done"
    services.model.go()
    try:
        turn = person.chat("hello")
    finally:
        services.model.come()
    assert turn.kinds == ["started", "memory_used", "context_assembled", "error"]
    error = turn.one("error")
    assert error["reason"] == "MODEL_UNAVAILABLE"
    assert "127.0.0.1" not in error["message"]
    assert person.chat("hello", conversation_id=turn.conversation_id).kinds[-1] == "done"


def test_a_model_that_breaks_off_is_an_error_event_after_what_it_said(
    services: Services, person: Person
) -> None:
    broken = replace(streams(role(), text("Cast ")), aborts=True)
    with services.model.answering(broken):
        turn = person.chat("What do we do?")
    assert turn.text == "Cast "
    assert turn.kinds[-2:] == ["delta", "error"]
    events = person.timeline(turn.conversation_id)
    said = [event["assistant_text"] for event in events if "assistant_text" in event]
    assert said == [{"text": "Cast ", "incomplete": True}]


# ------------------------------------------------------------ before the first event


def test_a_bad_request_keeps_its_status(person: Person) -> None:
    for message in ("", "x" * (32 * 1024 + 1)):
        turn = person.chat(message)
        assert (turn.status, turn.body["error"]["code"]) == (400, "INVALID_ARGUMENT")
        assert turn.body["error"]["violations"][0]["field"] == "message"


def test_a_second_turn_of_a_conversation_keeps_its_status(
    services: Services, person: Person
) -> None:
    script = streams(role(), text("Cast "), HOLD)
    with services.model.answering(script), person.listening("What do we do?") as lines:
        conversation = _after_deltas(lines, 1)
        turn = person.chat("And now?", conversation_id=conversation)
        assert (turn.status, turn.body["error"]["code"]) == (409, "ABORTED")


def test_a_killed_agent_ends_the_stream_in_an_error_and_later_chats_with_503(
    services: Services, person: Person
) -> None:
    script = streams(role(), text("Cast "), HOLD)
    with services.model.answering(script), person.listening("What do we do?") as stream:
        seen: list[str] = []
        lines = _noted(stream, seen)
        conversation = _after_deltas(lines, 1)
        services.agent.kill()
        try:
            rest = list(lines)
            turn = person.chat("hello")
        finally:
            services.agent.start()
    assert "event: error" in rest
    assert "event: done" not in rest
    assert (turn.status, turn.body["error"]["code"]) == (503, "UNAVAILABLE")
    poll(lambda: person.chat("hello").status, lambda status: status == 200)
    # Its turn is closed by whoever finds it, and all that was sent is kept.
    closed = poll(
        lambda: person.timeline(conversation), lambda events: any("error" in one for one in events)
    )
    assert closed[0]["user_text"]["text"] == "What do we do?"
    said = [event["assistant_text"] for event in closed if "assistant_text" in event]
    assert said == [{"text": "Cast ", "incomplete": True}]
    last_id = [line.removeprefix("id: ") for line in seen if line.startswith("id: ")][-1]
    (end,) = person.resume(last_id)
    assert end.event == "error"
    assert end.json["seq"] == int(last_id.rpartition("/")[2]) + 1


def _noted(lines: Iterator[str], seen: list[str]) -> Iterator[str]:
    for line in lines:
        seen.append(line)
        yield line


def test_the_folder_of_logs_holds_no_word_of_a_chat(services: Services) -> None:
    logs = [program.log for program in (services.memory, services.agent, services.gateway)]
    for log in logs:
        written = Path(log).read_text(encoding="utf-8")
        assert written
        assert "peanuts" not in written
        assert "dinner" not in written
