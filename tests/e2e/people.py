"""A person who chats through the gateway, as any client of its HTTP interface does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx

from tests.e2e.processes import poll
from tests.services.sse_reader import ServerSentEvent, read_events

PATIENCE = 60.0
"""Seconds after which a test that hangs fails; none takes that long."""

CHAT = "/api/v1/agent/chat"
_numbers = count()


@dataclass(frozen=True)
class Turn:
    """What one chat gave: its events, or the status and body of its refusal."""

    status: int
    events: list[ServerSentEvent]
    body: Any = None

    @property
    def kinds(self) -> list[str]:
        return [event.event for event in self.events]

    @property
    def text(self) -> str:
        return "".join(delta["text"] for delta in self.all("delta"))

    @property
    def conversation_id(self) -> str:
        return str(self.one("started")["conversation_id"])

    @property
    def memory(self) -> Any:
        return self.one("memory_used")

    @property
    def memory_types(self) -> set[str]:
        return {item["memory_type"].removeprefix("MEMORY_TYPE_") for item in self.memory["items"]}

    @property
    def components(self) -> dict[str, Any]:
        """What became of each component, by kind."""
        return {part["kind"]: part for part in self.one("context_assembled")["components"]}

    def all(self, kind: str) -> list[Any]:
        return [event.json[kind] for event in self.events if event.event == kind]

    def one(self, kind: str) -> Any:
        (found,) = self.all(kind)
        return found

    def reasons(self) -> set[str]:
        return {source["reason"] for source in self.memory["sources"]}


class Person:
    """Chats and remembers as one user; a key decides who that is."""

    def __init__(self, client: httpx.Client, user_id: str) -> None:
        self.client = client
        self.user_id = user_id

    def chat(self, message: str, **fields: Any) -> Turn:
        body = {"user_id": self.user_id, "message": message, **fields}
        answer = self.client.post(CHAT, json=body)
        if answer.status_code != 200:
            return Turn(answer.status_code, [], answer.json())
        assert answer.headers["content-type"].startswith("text/event-stream")
        return Turn(200, read_events(answer.content))

    def chat_when_well(self, message: str) -> Turn:
        """Chat until all of memory answers: a busy machine may miss its deadlines."""
        return poll(
            lambda: self.chat(message), lambda turn: turn.events and not turn.memory["degraded"]
        )

    @contextmanager
    def listening(self, message: str) -> Iterator[Iterator[str]]:
        """Give the lines of a stream as they come; leaves at the end of the block."""
        body = {"user_id": self.user_id, "message": message}
        with self.client.stream("POST", CHAT, json=body) as answer:
            assert answer.status_code == 200
            yield answer.iter_lines()

    def resume(self, last_event_id: str) -> list[ServerSentEvent]:
        """Give what followed the last event seen."""
        answer = self.client.get(
            f"{CHAT}/resume",
            params={"user_id": self.user_id},
            headers={"Last-Event-ID": last_event_id},
        )
        assert answer.status_code == 200, answer.text
        return read_events(answer.content)

    def reaches_memory(self) -> bool:
        asked = {"user_id": self.user_id}
        return self.client.get("/api/v1/memory/items", params=asked).status_code == 200

    def remember(self, content: str, kind: str = "FACT") -> str:
        memory = {"memory_type": f"MEMORY_TYPE_{kind}", "content": content}
        body = {"user_id": self.user_id, "memory": memory}
        answer = self.client.post("/api/v1/memory/items", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["memory"]["memory_id"])

    def memories(self) -> set[str]:
        """Give what is stored."""
        asked: dict[str, str | int] = {"user_id": self.user_id, "page_size": 200}
        answer = self.client.get("/api/v1/memory/items", params=asked)
        assert answer.status_code == 200, answer.text
        return {memory["content"] for memory in answer.json()["memories"]}

    def timeline(self, conversation_id: str) -> list[Any]:
        asked = {"user_id": self.user_id, "conversation_id": conversation_id, "page_size": "200"}
        answer = self.client.get("/api/v1/agent/conversation-timeline", params=asked)
        assert answer.status_code == 200, answer.text
        events: list[Any] = answer.json()["events"]
        return events


@contextmanager
def person_at(gateway: str, user_id: str = "", *, key: str = "") -> Iterator[Person]:
    """Connect a person, by default one that nobody else is."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"http://{gateway}"
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        yield Person(client, user_id or f"person-{next(_numbers)}")
