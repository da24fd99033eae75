"""What each section costs, and what the budget holds."""

from collections.abc import Mapping, Sequence

from agent_service.domain.components import Budget
from agent_service.domain.fit import Offer, cost
from agent_service.domain.layout import Place, closing, opening
from agent_service.domain.ledger import Ledger
from agent_service.domain.sections import SEPARATOR
from agent_service.domain.tokens import TokenCounter
from agent_service.domain.truncate import MARKER


def open_ledger(budget: Budget, counter: TokenCounter) -> Ledger:
    """Open the books: each section pays a separator, so there is one for the first too."""
    return Ledger(budget.usable - budget.per_call + counter.count_many([SEPARATOR])[0])


def offers(places: Sequence[Place], budget: Budget, counter: TokenCounter) -> list[Offer]:
    """Price all sections with one call of the counter."""
    texts = [place.section.texts() for place in places]
    blocks = {part.id: part for place in places if (part := place.section.component.block)}
    pieces = [SEPARATOR, MARKER]
    for part in blocks.values():
        pieces += (opening(part), closing(part))
    for several in texts:
        pieces += several
    counts = counter.count_many(pieces)
    separator, marker = counts[:2]
    fences = {
        name: separator + sum(counts[2 * place + 2 : 2 * place + 4])
        for place, name in enumerate(blocks)
    }
    at = 2 + 2 * len(blocks)
    shared: dict[tuple[int, str], dict[str, int]] = {}
    priced = []
    for place, several in zip(places, texts, strict=True):
        section, message = place
        mine = tuple(counts[at : at + len(several)])
        at += len(several)
        block = section.component.block
        join = separator if block is None else 0
        key = (message, "" if block is None else block.id)
        openings = shared.get(key)
        if openings is None:
            openings = shared[key] = _openings(place, budget, fences)
        per_message, taken = 0, mine[0]
        if section.dialogue:
            per_message = separator + budget.per_message
            taken = cost(mine, join=join, per_message=per_message)
        priced.append(Offer(section, several, mine, taken, marker, join, per_message, openings))
    return priced


def _openings(place: Place, budget: Budget, fences: Mapping[str, int]) -> dict[str, int]:
    openings = {}
    if budget.per_message and not place.section.dialogue:
        openings[f"message {place.message}"] = budget.per_message
    if place.section.component.block:
        block = place.section.component.block.id
        openings[f"block {block}"] = fences[block]
    return openings
