"""A model's answer as facts, each held against the user's own words."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from memory_service.adapters.llm.chat_model import Answer
from memory_service.adapters.llm.extract_examples import EXAMPLE_CONTENTS
from memory_service.adapters.llm.fact_fields import InvalidFact, read_fact
from memory_service.domain.errors import ModelUnreadable
from memory_service.domain.ingest import (
    Extraction,
    Fact,
    Intent,
    Turn,
)
from memory_service.domain.loose_json import Reading, read_json
from memory_service.domain.model import (
    MemoryType,
    Role,
)
from memory_service.domain.support import supports, words_of
from memory_service.domain.text import normalize
from memory_service.domain.zones import local_time


class Warned(StrEnum):
    """What is said of an answer that is used all the same."""

    TRUNCATED = "truncated"
    INVALID_FACT = "invalid_fact"
    UNSUPPORTED_FACT = "unsupported_fact"


MOST_READ = 50
"""Facts of an answer; what is beyond counts as cut off."""
_EXAMPLES = frozenset(map(normalize, EXAMPLE_CONTENTS))
_INTENT_OF = {
    MemoryType.CONSTRAINT: Intent.STANDING_INSTRUCTION,
    MemoryType.PREFERENCE: Intent.PREFERENCE,
}
"""Where an answer names no intent: by the type of the first fact, else personal_fact."""
_UNREAD = "the model's answer holds no fact that can be read, and does not say that there is none"


def read_facts(answer: Answer, turn: Turn) -> Extraction:
    """Give intent and facts of an answer, and a warning for each fact that was dropped.

    The user has said something in the turn. Raises ModelUnreadable where nothing was read: that
    there are no facts is for the model to say.
    """
    reading = read_json(answer.text, ("facts", "message_intent"))
    intent = _intent(reading)
    given = _items(reading)
    items, beyond = (given or [])[:MOST_READ], (given or [])[MOST_READ:]
    read = _read_each(items, _now(turn))
    if not read and _says_nothing(reading, intent, given):
        raise ModelUnreadable(_UNREAD)
    facts = _supported(read, turn)
    counts = {
        Warned.TRUNCATED: bool(answer.cut or beyond or not reading.whole),
        Warned.INVALID_FACT: len(items) - len(read),
        Warned.UNSUPPORTED_FACT: len(read) - len(facts),
    }
    return Extraction(
        intent=intent or _intent_of(facts),
        facts=tuple(facts),
        warnings=tuple(word for word, count in counts.items() for _ in range(count)),
    )


def _intent(reading: Reading) -> Intent | None:
    """Give the intent that is named, if it is one."""
    word = reading.value.get("message_intent") if isinstance(reading.value, dict) else None
    name = word.strip().lower() if isinstance(word, str) else ""
    return Intent(name) if name in set(Intent) else None


def _items(reading: Reading) -> list[Any] | None:
    """Give what stands for facts; None if nothing does.

    A single fact may stand without a list, but not half of one: what is missing could be how
    sensitive it is.
    """
    if isinstance(reading.value, list):
        return reading.value
    if "facts" not in reading.value:
        return None
    facts = reading.value["facts"]
    if isinstance(facts, list):
        return facts
    return [facts] if facts is not None and reading.whole else []


def _read_each(items: Sequence[Any], now: datetime) -> list[Fact]:
    """Give the facts that can be read."""
    facts = []
    for item in items:
        try:
            facts.append(read_fact(item, now))
        except InvalidFact:
            continue
    return facts


def _says_nothing(reading: Reading, intent: Intent | None, items: list[Any] | None) -> bool:
    """Tell whether an answer without a fact that can be read leaves open whether there are any."""
    if intent is None:
        return bool(items) or items is None or not reading.whole
    return intent.stores and (items is None or not reading.whole)


def _supported(facts: Sequence[Fact], turn: Turn) -> list[Fact]:
    """Give the facts that the user said.

    What is copied from the assistant or from an example must be theirs word for word.
    """
    said = words_of(_said(turn, Role.USER))
    context = [normalize(text) for text in _said(turn, Role.ASSISTANT)]

    def copied(fact: Fact) -> bool:
        content = normalize(fact.content)
        return content in _EXAMPLES or any(content in text for text in context)

    return [fact for fact in facts if supports(said, fact.content, wholly=copied(fact))]


def _said(turn: Turn, role: Role) -> list[str]:
    return [message.content for message in turn.messages if message.role is role]


def _now(turn: Turn) -> datetime:
    """Give the time of the user's last message."""
    last = [message for message in turn.messages if message.role is Role.USER][-1]
    return local_time(last.create_time, last.timezone)


def _intent_of(facts: Sequence[Fact]) -> Intent:
    if not facts:
        return Intent.CHITCHAT
    return _INTENT_OF.get(facts[0].memory_type, Intent.PERSONAL_FACT)
