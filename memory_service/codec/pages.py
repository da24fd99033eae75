"""Lists in pages, and the tokens between them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message

from memory_service.codec.checks import MAX_CONTENT_BYTES, Checks
from memory_service.codec.memories import MAX_ANSWER_BYTES, memory_message
from memory_service.codec.words import MEMORY_TYPES, STATUSES
from memory_service.domain.model import Memory
from memory_service.domain.text import normalize
from memory_service.ports import MemoryFilter
from memory_service.v1 import memory_pb2 as pb
from rpc.fields import items_of_page
from rpc.page_tokens import BadPageToken, page_place, page_token

Item = TypeVar("Item", bound=Message)

_NUMBER = re.compile("[0-9]{1,18}")
_TOKEN_BYTES = 1024  # more than any token has
_FRAME_BYTES = 32  # more than a message takes beside itself in a list


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """A page that is asked for; about is what its tokens are bound to."""

    user_id: str
    wanted: MemoryFilter
    size: int
    before: str
    about: tuple[str, ...]


def list_request(request: pb.ListMemoriesRequest) -> MemoryPage:
    """Read ListMemories. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    wanted = MemoryFilter(
        memory_types=check.words("memory_types", request.memory_types, MEMORY_TYPES),
        statuses=check.words("statuses", request.statuses, STATUSES),
        text=normalize(check.text("text", request.text, MAX_CONTENT_BYTES)),
    )
    size = items_of_page(check.not_negative("page_size", request.page_size))
    of = about("ListMemories", user_id, wanted.memory_types, wanted.statuses, wanted.text)
    before = place(check, request.page_token, of)
    check.passed()
    return MemoryPage(user_id=user_id, wanted=wanted, size=size, before=before, about=of)


def list_response(memories: Sequence[Memory], page: MemoryPage) -> pb.ListMemoriesResponse:
    """Give a page of what was read: one memory more than the page's size if there are more.

    The page ends early where it would exceed MAX_ANSWER_BYTES.
    """
    taken = fitting(memory_message(memory) for memory in memories[: page.size])
    response = pb.ListMemoriesResponse(memories=taken)
    if len(taken) < len(memories):
        response.next_page_token = page_token(taken[-1].memory_id, *page.about)
    return response


def fitting(messages: Iterable[Item]) -> list[Item]:
    """Give the first messages, as many as an answer has room for."""
    taken: list[Item] = []
    room = MAX_ANSWER_BYTES - _TOKEN_BYTES
    for message in messages:
        room -= message.ByteSize() + _FRAME_BYTES
        if room < 0:
            break
        taken.append(message)
    return taken


def number(check: Checks, given: str) -> int:
    """Give the number in a token's place, 0 for the first page."""
    if not given:
        return 0
    found = int(given) if _NUMBER.fullmatch(given) else 0
    if not found:
        check.refuse("page_token", "must be the next_page_token of the same list")
    return found


def about(rpc: str, user_id: str, *parts: str | frozenset[str]) -> tuple[str, ...]:
    """Say what a list is about: equal for the same RPC, user and filter only."""
    texts = (part if isinstance(part, str) else ",".join(sorted(part)) for part in parts)
    return (rpc, user_id, *texts)


def place(check: Checks, token: str, of: tuple[str, ...]) -> str:
    """Give the place after which a page begins; empty for the first page."""
    try:
        return page_place(token, *of)
    except BadPageToken:
        check.refuse("page_token", "must be the next_page_token of the same list")
        return ""
