"""How a section is made to fit: whole, by its fallback, cut, or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_service.domain.components import Item, Truncate
from agent_service.domain.context import Reason, Status
from agent_service.domain.items import drop_oldest, keep_lines
from agent_service.domain.sections import Section
from agent_service.domain.tokens import TokenCounter
from agent_service.domain.truncate import MIN_USEFUL, cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A section with its price."""

    section: Section
    counts: tuple[int, ...]
    """Tokens of each of its texts."""
    least: int
    """Tokens that header and marker take if its text is cut."""
    join: int
    """The separator before it."""
    per_message: int
    """What each message of a dialogue costs beyond its tokens: separator and framing."""
    openings: Mapping[str, int]
    """What it shares with others and the first of them pays, by name."""

    @property
    def cost(self) -> int:
        """Give what the whole section takes from the budget, join and openings apart."""
        return self.cost_of(self.counts)

    def cost_of(self, counts: Sequence[int]) -> int:
        """Give what texts of these tokens take."""
        framing = self.per_message * len(counts) - self.join if self.per_message else 0
        return sum(counts) + framing


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a section; without texts it is dropped."""

    status: Status
    reason: Reason
    texts: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    tokens: int = 0
    cost: int = 0


def dropped(reason: Reason) -> Fate:
    """Say that a section is left out."""
    return Fate(Status.DROPPED, reason)


def whole(offer: Offer) -> Fate:
    """Say that a section is sent in full."""
    section = offer.section
    tokens = sum(offer.counts)
    return Fate(Status.FULL, Reason.NONE, section.texts(), section.items, tokens, offer.cost)


def fit(offer: Offer, *, room: int, counter: TokenCounter) -> Fate:
    """Give the best of a section that takes at most room tokens and its own cap."""
    cap = offer.section.component.max_tokens
    limit = room if cap is None else min(cap, room)
    if offer.cost <= limit:
        return whole(offer)
    reason = Reason.BUDGET if cap is None or room < cap else Reason.COMPONENT_CAP
    if limit <= 0:
        return dropped(reason)
    if offer.section.fallback.strip():
        fate = _sent(Status.FALLBACK, reason, offer.section.with_fallback(), counter)
        if fate.cost <= limit:
            return fate
    match offer.section.component.truncate:
        case Truncate.NONE:
            return dropped(reason)
        case Truncate.ITEMS:
            return _with_items(offer, limit, reason, counter)
        case how:
            return _cut(offer, how, limit, reason, counter)


def _cut(offer: Offer, how: Truncate, limit: int, reason: Reason, counter: TokenCounter) -> Fate:
    if limit <= offer.least:
        return dropped(reason)
    section = offer.section
    body = ""
    if limit >= offer.least + MIN_USEFUL:
        body = cut(
            section.body,
            how,
            before=section.header,
            behind=section.end,
            room=limit,
            counter=counter,
        )
    if not body:
        return dropped(Reason.BELOW_MIN_USEFUL)
    return _sent(Status.TRUNCATED, reason, section.with_body(body), counter)


def _with_items(offer: Offer, limit: int, reason: Reason, counter: TokenCounter) -> Fate:
    section = offer.section
    if not section.dialogue:
        items = keep_lines(section, room=limit, counter=counter)
        if not items:
            return dropped(reason)
        return _sent(Status.TRUNCATED, reason, section.texts_of(items), counter, items)
    first = drop_oldest(
        section.items,
        [count + offer.per_message for count in offer.counts],
        excess=offer.cost - limit,
        step=section.component.truncation_step,
    )
    items, counts = section.items[first:], offer.counts[first:]
    if not items:
        return dropped(reason)
    texts = section.texts_of(items)
    return Fate(Status.TRUNCATED, reason, texts, items, sum(counts), offer.cost_of(counts))


def _sent(
    status: Status,
    reason: Reason,
    texts: Sequence[str],
    counter: TokenCounter,
    items: tuple[Item, ...] = (),
) -> Fate:
    tokens = counter.count_many(texts)[0]
    return Fate(status, reason, tuple(texts), items, tokens, tokens)
