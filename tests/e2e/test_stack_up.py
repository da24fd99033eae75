"""`memory-stack up --demo`: what a stranger sees in the first minutes, on both kinds of stores."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_service.v1 import memory_pb2 as pb
from stack.demo import QUESTIONS, USER
from tests.e2e.memories import user_of
from tests.e2e.people import Person, Turn, person_at
from tests.e2e.processes import ROOT, poll
from tests.e2e.stack_process import Stack, gone
from tests.services.openai_server import OpenAIServer, openai_server, says
from tests.services.sse_reader import read_events

ENGLISH, CHINESE = QUESTIONS
RULES = {
    "User is allergic to peanuts.",
    "用户周三晚上不排任何安排。",
    "Never plan anything for the user before 9:00.",
}
SERVERS = pytest.param("servers", marks=[pytest.mark.mariadb, pytest.mark.milvus_server])
on_the_embedded_default = pytest.mark.parametrize("stack", ["embedded"], indirect=True)


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with openai_server(says("Of ", "course.")) as server:
        yield server


@pytest.fixture(scope="module", params=["embedded", SERVERS])
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """One on the embedded default without a model, one on servers with a scripted model."""
    knobs = _servers(request) if request.param == "servers" else {}
    stack = Stack(tmp_path_factory.mktemp(request.param), "--demo", **knobs)
    try:
        yield stack
    finally:
        stack.clear()


def _servers(request: pytest.FixtureRequest) -> dict[str, str]:
    mariadb = request.getfixturevalue("mariadb_server")
    return {
        "MEMORY_DATABASE_URL": mariadb.url(),
        "AGENT_DATABASE_URL": mariadb.url(),
        "MEMORY_MILVUS_URI": request.getfixturevalue("milvus").uri,
        "MEMORY_MILVUS_NAMESPACE": "stack_",
        "AGENT_LLM_BASE_URL": request.getfixturevalue("model").base_url,
        "AGENT_LLM_MODEL": "scripted",
    }


@pytest.fixture
def running(stack: Stack) -> Stack:
    if not stack.running:
        stack.start()
    return stack


@pytest.fixture
def demo(running: Stack) -> Iterator[Person]:
    with person_at(running.gateway, USER) as person:
        yield person


def prompt(turn: Turn, model: OpenAIServer) -> str:
    """Give what the model was sent; the stand-in shows it in its answer."""
    if not turn.text.startswith("Of course."):
        return turn.text
    return "\n".join(message["content"] for message in model.calls[-1].body["messages"])


def assert_whole(turn: Turn) -> None:
    """Check the order of the events, and that nothing of the context was left out."""
    kinds = [kind for kind in turn.kinds if kind != "delta"]
    assert kinds == ["started", "memory_used", "context_assembled", "usage", "done"]
    first, last = turn.kinds.index("delta"), len(turn.kinds) - 1 - turn.kinds[::-1].index("delta")
    assert turn.kinds.index("context_assembled") < first
    assert last < turn.kinds.index("usage")
    assert [event.json["seq"] for event in turn.events] == list(range(1, len(turn.events) + 1))
    done = turn.one("done")
    assert (done["finish_reason"], done["incomplete"]) == ("stop", False)


# ------------------------------------------------------------ both kinds of stores


def test_the_first_retrieve_shows_every_type_of_memory(running: Stack) -> None:
    with user_of(running.memory, USER) as user:
        answer = user.retrieve(ENGLISH, timeout=10)
    types = {item.memory.memory_type for item in answer.items}
    assert types == set(pb.MemoryType.values()) - {pb.MEMORY_TYPE_UNSPECIFIED}


@pytest.mark.parametrize(
    ("question", "heading"), [(ENGLISH, "【Must follow】"), (CHINESE, "【必守约束】")]
)
def test_a_chat_uses_memory_and_says_what_went_in(
    demo: Person, model: OpenAIServer, question: str, heading: str
) -> None:
    turn = demo.chat_when_well(question)
    assert_whole(turn)
    assert turn.memory_types >= {"CONSTRAINT", "PREFERENCE"}
    assert turn.memory["pinned_returned"] == turn.memory["pinned_total"] >= 3
    for kind in ("instructions", "constraints", "preferences", "user_turn"):
        assert turn.components[kind]["status"] == "STATUS_FULL"
    assert turn.components["constraints"]["items_kept"] == len(RULES)
    report = turn.one("context_assembled")
    spent = sum(part["tokens"] for part in report["components"]) + report["overhead_tokens"]
    assert spent == report["total_tokens"] <= report["usable"]
    sent = prompt(turn, model)
    assert heading in sent
    assert all(rule in sent for rule in RULES)


@pytest.mark.parametrize("message", ["hi", "谢谢", "what's 17*23", "好的"])
def test_a_message_about_nothing_brings_what_is_pinned_and_no_facts(
    demo: Person, model: OpenAIServer, message: str
) -> None:
    turn = demo.chat_when_well(message)
    assert_whole(turn)
    assert "FACT" not in turn.memory_types
    assert "TODO_HINT" not in turn.memory_types
    assert "CONSTRAINT" in turn.memory_types
    sent = prompt(turn, model)
    assert all(rule in sent for rule in RULES)


def test_a_conversation_goes_on_and_is_kept(demo: Person) -> None:
    first = demo.chat(ENGLISH)
    second = demo.chat("好的", conversation_id=first.conversation_id)
    assert second.conversation_id == first.conversation_id
    assert second.components["recent_history"]["items_kept"] == 2
    said = [
        event.get("user_text") or event.get("assistant_text")
        for event in demo.timeline(first.conversation_id)
        if "user_text" in event or "assistant_text" in event
    ]
    assert [one["text"] for one in said] == [ENGLISH, first.text, "好的", second.text]


# ------------------------------------------------------------ what is printed


def commands(printed: str, pattern: str) -> list[str]:
    found = re.findall(pattern, printed, re.MULTILINE | re.DOTALL)
    assert found
    return found


@on_the_embedded_default
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_printed_curl_commands_run_as_printed(running: Stack) -> None:
    curls = commands(running.printed, r"^curl [^\n]*\\\n[^\n]*$")
    assert len(curls) == len(QUESTIONS)
    for command in curls:
        done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
        turn = Turn(200, read_events(done.stdout))
        assert_whole(turn)
        assert "User is allergic to peanuts." in turn.text


@on_the_embedded_default
def test_the_printed_python_client_runs_as_printed(running: Stack) -> None:
    (command,) = commands(running.printed, r"^[^\n]* - <<'END'\n.*?\nEND$")
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "MEMORY_TYPE_CONSTRAINT User is allergic to peanuts." in done.stdout


# ------------------------------------------------------------ a second one


@on_the_embedded_default
@pytest.mark.parametrize("name", ["memory", "agent", "gateway"])
def test_a_taken_port_is_refused_in_one_line(running: Stack, tmp_path: Path, name: str) -> None:
    free = {f"{other}_port": "1" for other in ("memory", "agent", "gateway") if other != name}
    second = running.another(data=str(tmp_path), **free)
    assert second.returncode == 1
    assert second.stdout == ""
    (line,) = second.stderr.splitlines()
    assert f"so {name} cannot listen there" in line
    assert f"--{name}-port" in line


@on_the_embedded_default
def test_a_taken_data_folder_is_refused_in_one_line(running: Stack) -> None:
    ports = {"memory_port": "1", "agent_port": "2", "gateway_port": "3"}
    second = running.another(**ports)
    assert second.returncode == 1
    assert second.stdout == ""
    (line,) = second.stderr.splitlines()
    assert line.startswith(f"{running.data} is in use by another memory-stack.")


# ------------------------------------------------------------ its end


@on_the_embedded_default
def test_ctrl_c_leaves_nothing_but_the_data_which_a_second_start_finds(
    running: Stack, demo: Person
) -> None:
    demo.remember("User plays the cello.")
    before = demo.memories()
    turn = demo.chat(ENGLISH)
    programs = running.programs()
    assert set(programs) == {"memory_service", "agent_service", "gateway"}
    assert running.interrupt() == 0
    assert running.complained == ""
    assert all(gone(pid) for pid in programs.values())
    running.start()
    assert f'the user "{USER}" has {len(before)} memories' in running.printed
    assert demo.memories() == before
    assert demo.timeline(turn.conversation_id)
    assert "User is allergic to peanuts." in demo.chat_when_well("好的").text


@on_the_embedded_default
def test_a_program_that_dies_ends_the_stack_in_one_line(running: Stack) -> None:
    programs = running.programs()
    os.kill(programs["agent_service"], signal.SIGKILL)
    assert running.process.wait(60) == 1
    (line,) = running.complained.splitlines()
    assert line.startswith("agent ended by itself (SIGKILL), see ")
    assert all(gone(pid) for pid in programs.values())


def test_ctrl_c_while_it_starts_stops_it_at_once(tmp_path: Path) -> None:
    stack = Stack(tmp_path, MEMORY_EMBEDDER="hash", MEMORY_MILVUS_URI="off")
    stack.begin()
    try:
        programs = poll(stack.programs, lambda found: len(found) == 3)
        assert stack.interrupt() == 0
    finally:
        stack.clear()
    assert stack.complained == ""
    assert all(gone(pid) for pid in programs.values())
