"""Writing what was admitted, and counting it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from agent_service.domain.components import Budget, Zone
from agent_service.domain.fit import Fate
from agent_service.domain.layout import Place, closing, opening
from agent_service.domain.model import Message
from agent_service.domain.sections import SEPARATOR
from agent_service.domain.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and what it counts."""

    messages: tuple[Message, ...]
    text: str
    stable: str
    total: int
    most: int
    """total, or more if the messages one by one are counted as more than their text."""
    stable_tokens: int


def compose(
    places: Sequence[Place], fates: Mapping[int, Fate], budget: Budget, counter: TokenCounter
) -> Prompt:
    """Write what was admitted and count it."""
    messages: list[Message] = []
    stable_messages = 0
    sent = [place for place in places if fates[place.section.position].texts]
    for _, group in groupby(sent, key=lambda place: place.message):
        together = list(group)
        messages += _messages(together, fates)
        if together[0].section.component.zone is Zone.STABLE:
            stable_messages = len(messages)
    contents = [message.content for message in messages]
    text = SEPARATOR.join(contents)
    stable = SEPARATOR.join(contents[:stable_messages])
    several = contents if len(contents) > 1 else []
    text_tokens, stable_tokens, *parts = counter.count_many([text, stable, *several])
    framing = budget.per_call + budget.per_message * len(messages) if messages else 0
    return Prompt(
        tuple(messages),
        text,
        stable,
        text_tokens + framing,
        max(text_tokens, sum(parts)) + framing,
        stable_tokens + budget.per_message * stable_messages,
    )


def _messages(together: Sequence[Place], fates: Mapping[int, Fate]) -> list[Message]:
    first = together[0].section
    if first.dialogue:
        items = fates[first.position].items
        return [Message(item.role, item.text) for item in items if item.role]
    chunks = []
    for _, group in groupby(together, key=lambda place: place.section.component.block):
        inside = [place.section for place in group]
        block = inside[0].component.block
        texts = [text for section in inside for text in fates[section.position].texts]
        chunks += [opening(block) + "".join(texts) + closing(block)] if block else texts
    return [Message(first.component.role, SEPARATOR.join(chunks))]
