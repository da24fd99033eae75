"""How a section is made to fit: whole, by its fallback, cut, or not at all."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent_service.domain.components import Item, Truncate
from agent_service.domain.context import Reason, Status
from agent_service.domain.items import drop_oldest, keep_lines
from agent_service.domain.sections import Section
from agent_service.domain.tokens import TokenCounter
from agent_service.domain.truncate import MIN_USEFUL, cut

_FULL, _NONE = Status.FULL, Reason.NONE
"""Once: looking up a member of an enum takes longer than all else in whole()."""


class Offer(NamedTuple):
    """A section with its price."""

    section: Section
    texts: tuple[str, ...]
    counts: tuple[int, ...]
    """Tokens of each text."""
    cost: int
    """What the whole section takes from the budget, join and openings apart."""
    marker: int
    """Tokens of the marker of a cut text."""
    join: int
    """The separator before it."""
    per_message: int
    """What each message of a dialogue costs beyond its tokens: separator and framing."""
    openings: Mapping[str, int]
    """What it shares with others and the first of them pays, by name."""


class Fate(NamedTuple):
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
    tokens = sum(offer.counts) if offer.per_message else offer.cost
    return Fate(_FULL, _NONE, offer.texts, offer.section.items, tokens, offer.cost)


def cost(counts: Sequence[int], *, join: int, per_message: int) -> int:
    """Give what texts of these tokens take; those of a dialogue have separators between them."""
    return sum(counts) + per_message * len(counts) - join


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
    if limit <= offer.marker:
        return dropped(reason)
    section = offer.section
    least = offer.marker + counter.count_many([f"{section.header}{section.end}"])[0]
    if limit <= least:
        return dropped(reason)
    body = ""
    if limit >= least + MIN_USEFUL:
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
    taken = cost(counts, join=offer.join, per_message=offer.per_message)
    return Fate(Status.TRUNCATED, reason, texts, items, sum(counts), taken)


def _sent(
    status: Status,
    reason: Reason,
    texts: Sequence[str],
    counter: TokenCounter,
    items: tuple[Item, ...] = (),
) -> Fate:
    tokens = counter.count_many(texts)[0]
    return Fate(status, reason, tuple(texts), items, tokens, tokens)
