"""What the memory service is asked to learn from a turn, and how long to wait between tries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import grapheme

from agent_service.domain.model import Role

MAX_CONTENT_BYTES = 32 * 1024
"""Of a message, in UTF-8; a turn is two messages, so its own limit of 256 KiB is never reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """What was said in a turn, word for word; timezone is for relative dates, empty: UTC."""

    role: Role
    content: str
    create_time: datetime
    timezone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnToLearn:
    """What the user said in a turn, and what the assistant answered, if it did.

    Nothing else: no recalled memories, no instructions, no earlier turns. request_id makes a second
    delivery harmless.
    """

    user_id: str
    conversation_id: str
    turn_id: str
    request_id: str
    messages: Sequence[Spoken]


def fitted(turn: TurnToLearn) -> TurnToLearn:
    """Cut the assistant's words to what is accepted; they are context only.

    The user's are never cut: a longer message than the limit is not accepted in the first place.
    """
    return replace(turn, messages=[_fitted(message) for message in turn.messages])


def _fitted(message: Spoken) -> Spoken:
    if message.role is Role.USER:
        return message
    return replace(message, content=beginning(message.content, MAX_CONTENT_BYTES))


def beginning(text: str, most: int) -> str:
    """Give the longest beginning of at most that many UTF-8 bytes that ends between graphemes.

    Between characters only if the first grapheme alone is longer.
    """
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    head = encoded[:most].decode(errors="ignore")
    return text[: grapheme.safe_split_index(text, len(head))] or head


def wait_after(failures: int, jitter: float, *, first: float = 1.0, longest: float = 60.0) -> float:
    """Give the seconds to wait after so many failures in a row, 1 or more.

    The first wait doubles with each failure up to the longest; jitter in [0, 1) takes up to half
    of it away, so that many who failed together do not come back together.
    """
    doubled = min(first * 2.0 ** min(failures - 1, 30), longest)
    return doubled * (1.0 - jitter / 2.0)
