"""Page tokens: opaque to clients, bound to what the list is about, such as user and filter.

A token holds a place and a mark of what the list is about. It opens nothing, for every query is
scoped by the user of its own request; the mark only keeps a token from being used for another list.
"""

import base64
import binascii
import hashlib
import json

_MARK_BYTES = 16


class BadPageToken(ValueError):
    """Not a token, or not one of this list."""


def page_token(place: str, *about: str) -> str:
    """Give a token that goes on after a place, which is not empty."""
    raw = _mark(about) + place.encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def page_place(token: str, *about: str) -> str:
    """Give the place of a token, empty for an empty one: the first page.

    Raises BadPageToken unless it was made about the same.
    """
    if not token:
        return ""
    try:
        padding = "=" * (-len(token) % 4)
        raw = base64.b64decode(token + padding, altchars=b"-_", validate=True)
        place = raw[_MARK_BYTES:].decode()
    except (binascii.Error, ValueError):
        raw, place = b"", ""
    if raw[:_MARK_BYTES] != _mark(about) or not place:
        raise BadPageToken
    return place


def _mark(about: tuple[str, ...]) -> bytes:
    return hashlib.sha256(json.dumps(about).encode()).digest()[:_MARK_BYTES]
