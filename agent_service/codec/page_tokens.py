"""What page tokens hold here: a place in a list by time and id, or in a timeline."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_service.domain.errors import InvalidField
from agent_service.domain.text import clean_text
from rpc.fields import id_problems
from rpc.page_tokens import BadPageToken, page_place, page_token

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELD = "page_token"


def encode_time_place(place: tuple[datetime, str] | None, *about: str) -> str:
    """Give the token of a place in a list by time and id; None: empty."""
    if place is None:
        return ""
    micros = (place[0] - _EPOCH) // timedelta(microseconds=1)
    return page_token(json.dumps([micros, place[1]]), *about)


def decode_time_place(token: str, *about: str) -> tuple[datetime, str] | None:
    """Give the place of a token. Raises InvalidField unless it was made about the same."""
    match _place(token, about):
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
    return "" if seq is None else page_token(json.dumps([side, seq]), *about)


def decode_seq_place(token: str, *about: str) -> tuple[str, int] | None:
    """Give ("after" | "before", seq). Raises InvalidField unless it was made about the same."""
    match _place(token, about):
        case None:
            return None
        case ["after" | "before" as side, int(seq)] if 0 <= seq < 2**31:
            return side, seq
        case _:
            raise _bad_token()


def _is_id(value: str) -> bool:
    # JSON may name half a surrogate pair, which no store takes.
    return clean_text(value) == value and not id_problems(value)


def _bad_token() -> InvalidField:
    return InvalidField(_FIELD, "not a token of this list")


def _place(token: str, about: tuple[str, ...]) -> Any:
    """Give what stands in a token, None for an empty one; anybody may have written it."""
    try:
        place = page_place(token, *about)
        return json.loads(place) if place else None
    except (BadPageToken, ValueError, RecursionError):
        raise _bad_token() from None
