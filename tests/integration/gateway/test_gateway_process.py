"""The gateway as a process, and in front of the real services."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.services.scripted_agent import events, scripted_agent, serving_scripted
from tests.services.sse_reader import ServerSentEvent, read_events

CODE = [sys.executable, "-m"]
USER = "鲍勃 🌍"


@contextmanager
def process(module: str, *arguments: str, **environment: str) -> Iterator[tuple[Any, str]]:
    """Start a service of ours, and give it with the address that it says."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GATEWAY_", "AGENT_", "MEMORY_"))
    }
    child = subprocess.Popen(
        [*CODE, module, *(arguments or ("serve",))],
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        line = next((line for line in child.stdout if "listening on " in line), "")
        yield child, line.strip().removeprefix("listening on ")
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(30)
        assert child.stdout is not None
        child.stdout.close()


def refused(**environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [*CODE, "gateway", "serve"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


async def test_sigterm_ends_it_with_0_and_running_turns_with_an_error_event() -> None:
    agent = scripted_agent()
    agent.script = [*events("a"), 60.0]
    async with serving_scripted(agent) as server:
        start = process(
            "gateway",
            GATEWAY_LISTEN="127.0.0.1:0",
            GATEWAY_AGENT_TARGET=server.address,
            GATEWAY_SHUTDOWN_GRACE="0.2",
        )
        child, address = await asyncio.to_thread(start.__enter__)
        try:
            async with (
                httpx.AsyncClient(timeout=30, trust_env=False) as client,
                client.stream(
                    "POST", f"http://{address}/api/v1/agent/chat", json={"message": "hi"}
                ) as answer,
            ):
                seen = b""
                async for chunk in answer.aiter_raw():
                    seen += chunk
                    if b'"a"' in chunk:
                        child.send_signal(signal.SIGTERM)
            assert b"SHUTTING_DOWN" in seen
            assert await asyncio.to_thread(child.wait, 30) == 0
        finally:
            await asyncio.to_thread(start.__exit__, None, None, None)


def test_a_taken_address_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = refused(GATEWAY_LISTEN=address)
    assert code == 1
    assert said == f"gateway: cannot listen on {address}: Address already in use\n"


def test_a_broken_file_of_keys_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text("{")
    code, said = refused(GATEWAY_LISTEN="127.0.0.1:0", GATEWAY_API_KEYS_FILE=str(file))
    assert code == 2
    assert said.splitlines()[-1].startswith(f"gateway: {file} is no readable file of API keys")


class Walk:
    """One user's way through the real services."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=f"http://{address}/api/v1", timeout=60, trust_env=False)

    def ok(self, method: str, path: str, **given: Any) -> Any:
        answer = self.client.request(method, path, **given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str, **fields: Any) -> Any:
        return self.ok("GET", path, params={"user_id": USER, **fields})

    def send(self, method: str, path: str, **fields: Any) -> Any:
        return self.ok(method, path, json={"user_id": USER, **fields})

    def chat(self, **fields: Any) -> list[ServerSentEvent]:
        answer = self.client.post("/agent/chat", json={"user_id": USER, **fields})
        assert answer.status_code == 200, answer.text
        return read_events(answer.content)


def test_a_user_walks_through_the_real_services(tmp_path: Path) -> None:
    data = {"MEMORY_DATA_DIR": str(tmp_path), "AGENT_DATA_DIR": str(tmp_path)}
    memory_env = {"MEMORY_LISTEN": "127.0.0.1:0", "MEMORY_EMBEDDER": "hash", **data}
    with process("memory_service", MEMORY_MILVUS_URI="off", **memory_env) as (_, memory):
        agent_env = {"AGENT_LISTEN": "127.0.0.1:0", "AGENT_MEMORY_TARGET": memory, **data}
        targets = {"GATEWAY_MEMORY_TARGET": memory, "GATEWAY_LISTEN": "127.0.0.1:0"}
        with (
            process("agent_service", **agent_env) as (_, agent),
            process("gateway", GATEWAY_AGENT_TARGET=agent, **targets) as (_, address),
        ):
            walk = Walk(address)
            _memories(walk)
            _conversations(walk)


def _memories(walk: Walk) -> None:
    content = "用户对花生过敏。\u2028 data: {x} 🙂"
    new = {"memory_type": "MEMORY_TYPE_CONSTRAINT", "content": content, "importance": 0.0}
    stored = walk.send("POST", "/memory/items", memory=new)
    assert stored["created"]
    memory = stored["memory"]
    assert (memory["content"], memory["importance"]) == (content, 0.0)
    item = f"/memory/items/{memory['memory_id']}"
    assert walk.get(item)["memory"] == memory
    assert [m["memory_id"] for m in walk.get("/memory/items")["memories"]] == [memory["memory_id"]]
    change = {"title": "花生", "version": memory["version"]}
    changed = walk.send("PATCH", item, memory=change)["memory"]
    assert (changed["title"], changed["content"]) == ("花生", content)
    stale = walk.client.patch(item, json={"user_id": USER, "memory": change})
    assert (stale.status_code, stale.json()["error"]["reason"]) == (409, "STALE_VERSION")
    deleted = walk.ok("DELETE", item, params={"user_id": USER})["memory"]
    assert deleted["status"] == "MEMORY_STATUS_DELETED"
    assert walk.send("POST", "/memory/retrieve", query="花生")["items"] == []
    walk.ok("POST", f"{item}/restore", params={"user_id": USER})
    (found,) = walk.send("POST", "/memory/retrieve", query="花生", explain=True)["items"]
    assert found["memory"]["memory_id"] == memory["memory_id"]
    settings = walk.send("PATCH", "/memory/settings", settings={"sensitive_memory_enabled": True})
    assert settings["settings"]["sensitive_memory_enabled"]
    assert walk.get("/memory/settings")["settings"] == settings["settings"]
    assert walk.get("/memory/stats")["active_by_type"]["constraint"] == "1"
    nothing = walk.client.get("/memory/items/nothing", params={"user_id": USER})
    assert nothing.status_code == 404


def _conversations(walk: Walk) -> None:
    said = {"message": "今晚吃什么？\n\u2028data: x", "client_message_id": "m1"}
    turn = walk.chat(**said)
    assert (turn[0].event, turn[-1].event) == ("started", "done")
    used = next(event for event in turn if event.event == "memory_used").json["memory_used"]
    assert [item["memory_type"] for item in used["items"]] == ["MEMORY_TYPE_CONSTRAINT"]
    assert [event.json for event in walk.chat(**said)] == [event.json for event in turn]
    middle = turn[2]
    resumed = walk.client.get(
        "/agent/chat/resume", params={"user_id": USER}, headers={"Last-Event-ID": middle.id}
    )
    assert [e.id for e in read_events(resumed.content)] == [event.id for event in turn[3:]]
    over = walk.client.get(
        "/agent/chat/resume", params={"user_id": USER, "last_event_id": turn[-1].id}
    )
    assert over.status_code == 204
    started = turn[0].json["started"]
    conversation = {"conversation_id": started["conversation_id"]}
    meta = walk.get("/agent/conversation-meta", **conversation)["conversation"]
    assert meta["message_count"] == 2
    assert walk.get("/agent/conversation-list")["conversations"] == [meta]
    timeline = walk.get("/agent/conversation-timeline", **conversation)["events"]
    assert timeline[0]["user_text"]["text"] == said["message"]
    stats = walk.get("/agent/context-stats", **conversation)
    assert stats["totals"]["turns"] == 1
    ended = {**conversation, "turn_id": started["turn_id"]}
    assert walk.send("POST", "/agent/chat/cancel", **ended) == {"cancelled": False}
    empty = walk.client.post("/agent/chat", json={"user_id": USER, "message": " "})
    assert empty.status_code == 400
    assert empty.json()["error"]["violations"][0]["field"] == "message"
    later = walk.client.get("/agent/schedule-preview", params={"user_id": USER, **conversation})
    assert later.status_code == 501
