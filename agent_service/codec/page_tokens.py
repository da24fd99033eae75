"""Page tokens: opaque to clients, bound to the user and filter of the list.

A token holds a place and a mark of what the list is about. It opens nothing, for every query is
scoped by the user of its own request; the mark only keeps a token from being used for another list.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agent_service.codec.checks import MAX_ID_BYTES
from agent_service.domain.errors import InvalidField
from agent_service.domain.text import clean_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MARK_CHARACTERS = 16
_FIELD = "page_token"


def encode_time_place(place: tuple[datetime, str] | None, *about: str) -> str:
    """Give the token of a place in a list by time and id; None: empty."""
    if place is None:
        return ""
    return _encode([(place[0] - _EPOCH) // timedelta(microseconds=1), place[1]], about)


def decode_time_place(token: str, *about: str) -> tuple[datetime, str] | None:
    """Give the place of a token. Raises InvalidField unless it was made about the same."""
    match _decode(token, about):
        case None:
            return None
        case [int(micros), str(last_id)] if micros >= 0 and _is_id(last_id):
            try:
                return _EPOCH + timedelta(microseconds=micros), last_id
            except OverflowError:
                raise _bad_token() from None
        case _:
            raise _bad_token()


def encode_seq_place(side: str, seq: int | None, *about: str) -> str:
    """Give the token of what is "after" or "before" a seq; None: empty."""
    return "" if seq is None else _encode([side, seq], about)


def decode_seq_place(token: str, *about: str) -> tuple[str, int] | None:
    """Give ("after" | "before", seq). Raises InvalidField unless it was made about the same."""
    match _decode(token, about):
        case None:
            return None
        case ["after" | "before" as side, int(seq)] if 0 <= seq < 2**31:
            return side, seq
        case _:
            raise _bad_token()


def _is_id(value: str) -> bool:
    # JSON may name half a surrogate pair, which no store takes.
    return clean_text(value) == value and len(value.encode()) <= MAX_ID_BYTES


def _bad_token() -> InvalidField:
    return InvalidField(_FIELD, "not a token of this list")


def _encode(place: Sequence[object], about: tuple[str, ...]) -> str:
    text = json.dumps([_mark(about), *place], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(token: str, about: tuple[str, ...]) -> list[object] | None:
    if not token:
        return None
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        match json.loads(raw):
            case [mark, *place] if mark == _mark(about):
                return place
            case _:
                raise _bad_token()
    except (binascii.Error, ValueError, RecursionError):
        raise _bad_token() from None


def _mark(about: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:_MARK_CHARACTERS]
