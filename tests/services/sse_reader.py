"""A reader of server-sent events, by the WHATWG text: the test's own, not the gateway's."""

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ServerSentEvent:
    event: str
    data: str
    id: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


def read_events(stream: bytes) -> list[ServerSentEvent]:
    """Give the events that a browser would dispatch; an unfinished last one is none."""
    events: list[ServerSentEvent] = []
    kind, data, last_id = "", list[str](), ""
    text = stream.decode("utf-8").removeprefix("\ufeff")
    for line in re.split("\r\n|\r|\n", text):
        if not line:
            if data:
                events.append(ServerSentEvent(kind or "message", "\n".join(data), last_id))
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            last_id = value
    return events
