"""The draft of a fact: the memory that it would become; and which facts are dropped at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memory_service.domain.errors import MemoryNotAllowed
from memory_service.domain.ingest import (
    CONFIDENCE,
    IMPORTANCE,
    Action,
    Decision,
    Extraction,
    Fact,
    Reason,
    Turn,
)
from memory_service.domain.model import Memory, MemoryType, UserSettings
from memory_service.domain.secrets import holds_secret
from memory_service.domain.text import content_hash, default_title, normalize, without_nul
from memory_service.domain.write import check_allowed

MOST_FACTS = 3
"""Of a turn."""
LONGEST_CONTENT = 1000
LONGEST_TITLE = 64
"""Both in characters."""
LEAST_CONFIDENCE = 0.5
LIFE: Mapping[MemoryType, timedelta] = {
    MemoryType.FACT: timedelta(days=180),
    MemoryType.TODO_HINT: timedelta(days=14),
}
"""How long memories of a type live if the extractor names no end; the others have none."""

_MOST_SENSITIVE = 2
_WORDLESS = frozenset({Reason.SECRET, Reason.SETTINGS, Reason.INVALID_FACT})


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact as it was read, the memory that it would become, and why it is dropped, if it is.

    The memory's id is one that it would have.
    """

    fact: Fact
    memory: Memory
    refusal: Reason | None = None


def draft(fact: Fact, turn: Turn, memory_id: str, now: datetime) -> Memory:
    """Give the memory that a fact would become: what the extractor left open takes its default.

    The content is kept as it is but for NUL; a title that is too long gives way to the default.
    """
    content = without_nul(fact.content)
    title = without_nul(fact.title)
    life = LIFE.get(fact.memory_type)
    return Memory(
        memory_id=memory_id,
        user_id=turn.user_id,
        conversation_id=turn.conversation_id,
        assistant_id=turn.assistant_id,
        run_id=turn.run_id,
        memory_type=fact.memory_type,
        title=title if 0 < len(title) <= LONGEST_TITLE else default_title(content),
        content=content,
        normalized_content=normalize(content),
        content_hash=content_hash(fact.memory_type, content),
        confidence=CONFIDENCE if fact.confidence is None else fact.confidence,
        importance=IMPORTANCE.get(fact.memory_type, 0.0)
        if fact.importance is None
        else fact.importance,
        sensitivity_level=fact.sensitivity_level,
        is_explicit=fact.is_explicit,
        expire_time=now + life if fact.expire_time is None and life else fact.expire_time,
        turn_id=turn.turn_id,
        create_time=now,
        update_time=now,
    )


def drafts(
    extraction: Extraction,
    memories: Sequence[Memory],
    settings: UserSettings,
) -> Sequence[Draft]:
    """Say of each fact whether it is dropped; memories are the facts' drafts, in their order.

    Of those that nothing else speaks against only MOST_FACTS are taken: constraints before all
    others, then the first ones.
    """
    pairs = list(zip(extraction.facts, memories, strict=True))
    refusals = [_refusal(memory, fact, extraction, settings) for fact, memory in pairs]
    free = [place for place, reason in enumerate(refusals) if reason is None]
    free.sort(key=lambda place: memories[place].memory_type is not MemoryType.CONSTRAINT)
    for place in free[MOST_FACTS:]:
        refusals[place] = Reason.TOO_MANY_FACTS
    return [
        Draft(fact, memory, reason) for (fact, memory), reason in zip(pairs, refusals, strict=True)
    ]


def dropped(memory: Memory, reason: Reason) -> Decision:
    """Give the decision about a fact that is dropped at once.

    What must not be kept leaves no words there, and no hash of them: a secret, what the user's
    settings forbid, and what is no fact, which may be of any length.
    """
    shown = replace(memory, memory_id="")
    if reason in _WORDLESS:
        shown = replace(shown, title="", content="", normalized_content="", content_hash="")
    return Decision(fact=shown, action=Action.NONE, reason=reason)


def _refusal(
    memory: Memory, fact: Fact, extraction: Extraction, settings: UserSettings
) -> Reason | None:
    """Say why a fact is dropped, whatever the others are; secrets first, so that none is kept."""
    if holds_secret(memory.content) or holds_secret(fact.title):
        return Reason.SECRET
    if not is_sound(memory):
        return Reason.INVALID_FACT
    try:
        check_allowed(settings, memory)
    except MemoryNotAllowed:
        return Reason.SETTINGS
    if not extraction.intent.stores:
        return Reason.INTENT
    return Reason.LOW_CONFIDENCE if memory.confidence < LEAST_CONFIDENCE else None


def is_sound(memory: Memory) -> bool:
    """Tell whether an extractor's fact is one: words of bounded length, numbers in their range."""
    return (
        memory.memory_type is not MemoryType.UNKNOWN
        and memory.normalized_content != ""
        and len(memory.content) <= LONGEST_CONTENT
        and 0 <= memory.confidence <= 1
        and 0 <= memory.importance <= 1
        and 0 <= memory.sensitivity_level <= _MOST_SENSITIVE
    )
