"""Lists in pages, and the tokens between them."""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.codec.checks import MAX_CONTENT_BYTES, Checks
from memory_service.codec.memories import MAX_ANSWER_BYTES, memory_message, memory_size
from memory_service.codec.words import MEMORY_TYPES, STATUSES
from memory_service.domain.model import Memory
from memory_service.domain.text import normalize
from memory_service.ports import MemoryFilter
from memory_service.v1 import memory_pb2 as pb

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200

_MARK_BYTES = 16
_TOKEN_BYTES = 1024  # more than any token has


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """A page that is asked for; mark is what its tokens are bound to."""

    user_id: str
    wanted: MemoryFilter
    size: int
    before: str
    mark: bytes


def list_request(request: pb.ListMemoriesRequest) -> MemoryPage:
    """Read ListMemories. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    wanted = MemoryFilter(
        memory_types=check.words("memory_types", request.memory_types, MEMORY_TYPES),
        statuses=check.words("statuses", request.statuses, STATUSES),
        text=normalize(check.text("text", request.text, MAX_CONTENT_BYTES)),
    )
    size = page_size(check, request.page_size)
    mark = mark_of("ListMemories", user_id, wanted.memory_types, wanted.statuses, wanted.text)
    before = page_place(check, request.page_token, mark)
    check.passed()
    return MemoryPage(user_id=user_id, wanted=wanted, size=size, before=before, mark=mark)


def list_response(memories: Sequence[Memory], page: MemoryPage) -> pb.ListMemoriesResponse:
    """Give a page of what was read: one memory more than the page's size if there are more.

    The page ends early where it would exceed MAX_ANSWER_BYTES.
    """
    taken: list[Memory] = []
    room = MAX_ANSWER_BYTES - _TOKEN_BYTES
    for memory in memories[: page.size]:
        room -= memory_size(memory)
        if room < 0:
            break
        taken.append(memory)
    response = pb.ListMemoriesResponse(memories=[memory_message(memory) for memory in taken])
    if len(taken) < len(memories):
        response.next_page_token = page_token(taken[-1].memory_id, page.mark)
    return response


def page_size(check: Checks, number: int) -> int:
    """Give 50 for 0, and at most 200."""
    return min(check.not_negative("page_size", number) or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)


def mark_of(rpc: str, user_id: str, *parts: str | frozenset[str]) -> bytes:
    """Digest what a list is about: equal for the same RPC, user and filter only."""
    texts = [rpc, user_id]
    texts += [part if isinstance(part, str) else ",".join(sorted(part)) for part in parts]
    raw = b"".join(len(text.encode()).to_bytes(4) + text.encode() for text in texts)
    return hashlib.sha256(raw).digest()[:_MARK_BYTES]


def page_token(place: str, mark: bytes) -> str:
    """Give a token that continues after a place.

    It opens nothing: each query is scoped by the user of its own request. The mark keeps it from
    being used for another list by mistake.
    """
    return base64.urlsafe_b64encode(mark + place.encode()).decode().rstrip("=")


def page_place(check: Checks, token: str, mark: bytes) -> str:
    """Give the place after which a page begins; empty for the first page."""
    if not token:
        return ""
    try:
        padding = "=" * (-len(token) % 4)
        raw = base64.b64decode(token + padding, altchars=b"-_", validate=True)
        place = raw[_MARK_BYTES:].decode()
    except (binascii.Error, ValueError):
        raw, place = b"", ""
    if raw[:_MARK_BYTES] != mark or not place:
        check.refuse("page_token", "must be the next_page_token of the same list")
    return place
