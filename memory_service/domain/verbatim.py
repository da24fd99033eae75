"""What of a turn is kept word for word, beside the facts read out of it (SPEC_MEMORY 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_service.domain.errors import MemoryNotAllowed
from memory_service.domain.ingest import Extraction, Turn, TurnMessage
from memory_service.domain.model import Memory, MemoryType, Role, UserState
from memory_service.domain.rules.sensitivity import sensitivity_level
from memory_service.domain.secrets import holds_secret
from memory_service.domain.text import content_hash, default_title, normalize, without_nul
from memory_service.domain.write import check_allowed

LONGEST = 16 * 1024
"""In bytes of UTF-8, as of any content."""
IMPORTANCE = 0.3
CONFIDENCE = 0.6
"""That of a fact of which nothing is known: what was read out of a turn comes before the turn."""
LIFE = timedelta(days=90)
"""From when it is kept, as that of facts is."""

TOO_LONG = "too_long"
SECRET = "secret"  # noqa: S105 - a word of the contract
"""Warnings: a message is not kept."""
VERBATIM = "verbatim"
"""Why it is stored, as history says it."""

_KEPT = frozenset({Role.USER, Role.ASSISTANT})
_MOST_SENSITIVE = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """Memories to store, in the turn's order and without ids, and what to tell about others."""

    memories: Sequence[Memory] = ()
    warnings: Sequence[str] = ()


def verbatim(turn: Turn, extraction: Extraction, state: UserState, now: datetime) -> Kept:
    """Choose what to keep of a turn, for a user who wants that; of others nothing.

    What the user and the assistant said, each message by itself. Not: blank messages, long ones and
    such with a secret; what was said until the user was erased; what the user's settings forbid.
    A message is as sensitive as its own words, and as the most sensitive fact of the turn.
    """
    if not state.settings.verbatim_turns_enabled:
        return Kept()
    levels = [fact.sensitivity_level for fact in extraction.facts]
    sensitivity = min(max([0, *levels]), _MOST_SENSITIVE)
    memories: list[Memory] = []
    warnings: list[str] = []
    for message in turn.messages:
        if not _is_said(message, state):
            continue
        problem = _problem(message)
        if problem:
            warnings.append(problem)
            continue
        level = max(sensitivity, sensitivity_level(message.content))
        memory = _memory(message, turn, level, now)
        try:
            check_allowed(state.settings, memory)
        except MemoryNotAllowed:
            continue
        memories.append(memory)
    return Kept(memories, warnings)


def _is_said(message: TurnMessage, state: UserState) -> bool:
    erased = state.erase_time
    return (
        message.role in _KEPT
        and normalize(without_nul(message.content)) != ""
        and (erased is None or message.create_time > erased)
    )


def _problem(message: TurnMessage) -> str:
    if holds_secret(message.content):
        return SECRET
    return TOO_LONG if len(without_nul(message.content).encode()) > LONGEST else ""


def _memory(message: TurnMessage, turn: Turn, sensitivity: int, now: datetime) -> Memory:
    """Give the memory; who spoke is its role: no name is known."""
    content = without_nul(message.content)
    return Memory(
        memory_id="",
        user_id=turn.user_id,
        conversation_id=turn.conversation_id,
        assistant_id=turn.assistant_id,
        run_id=turn.run_id,
        memory_type=MemoryType.FACT,
        title=default_title(content),
        content=content,
        normalized_content=normalize(content),
        content_hash=content_hash(MemoryType.FACT, content),
        confidence=CONFIDENCE,
        importance=IMPORTANCE,
        sensitivity_level=sensitivity,
        expire_time=now + LIFE,
        turn_id=turn.turn_id,
        create_time=now,
        update_time=now,
        is_verbatim=True,
        occur_time=message.create_time,
        role=message.role,
    )
