"""Server-sent events: how one event is written, and how a place in a stream is named.

Format: WHATWG HTML, "Server-sent events". Every line break that any client might know, not only
CR and LF, is escaped inside the JSON, so that data is one line for sloppy readers too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

HEARTBEAT = b": \n\n"
"""A comment: keeps proxies from closing a silent stream, and no client shows it."""

MEDIA_TYPE = "text/event-stream"

# json.dumps escapes control characters below U+0020 by itself
_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_PARTS = 3
_MAX_SEQ = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """An event of a turn, or, with seq 0, the place before its first one."""

    conversation_id: str
    turn_id: str
    seq: int = 0


def one_line(value: Mapping[str, Any]) -> str:
    """Give JSON without any line break in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_BREAKS)


def frame(event: str, data: Mapping[str, Any], event_id: str = "") -> bytes:
    """Write one event; without an id, clients keep the last one as the place to resume after.

    event and event_id must hold no line break; ids made by event_id never do.
    """
    identified = f"id: {event_id}\n" if event_id else ""
    return f"{identified}event: {event}\ndata: {one_line(data)}\n\n".encode()


def event_id(place: Place) -> str:
    """Name an event: conversation_id/turn_id/seq, ids percent-encoded, so ASCII whatever they are.

    Ids of letters, digits and "-._~" look as they are.
    """
    return f"{escaped(place.conversation_id)}/{escaped(place.turn_id)}/{place.seq}"


def parse_event_id(text: str) -> Place | None:
    """Read what event_id wrote; None for anything else."""
    parts = text.split("/")
    if len(parts) != _PARTS or not (parts[2].isascii() and parts[2].isdigit()):
        return None
    conversation_id, turn_id = (unquote(part) for part in parts[:2])
    seq = int(parts[2][:11])
    if not (conversation_id and turn_id) or seq > _MAX_SEQ:
        return None
    return Place(conversation_id, turn_id, seq)


def escaped(name: str) -> str:
    """Give an id as it may stand in a header or a line: percent-encoded UTF-8."""
    return quote(name, safe="")
