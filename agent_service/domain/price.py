"""What each section costs, and what the budget holds."""

from collections.abc import Mapping, Sequence

from agent_service.domain.components import Budget
from agent_service.domain.fit import Offer
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
    blocks = {block.id: block for place in places if (block := place.section.component.block)}
    pieces = [SEPARATOR, MARKER]
    for block in blocks.values():
        pieces += (opening(block), closing(block))
    pieces += [f"{place.section.header}{place.section.end}" for place in places]
    pieces += [text for several in texts for text in several]
    counts = iter(counter.count_many(pieces))
    separator, marker = next(counts), next(counts)
    fences = {name: separator + next(counts) + next(counts) for name in blocks}
    leasts = [marker + next(counts) for _ in places]
    return [
        Offer(
            section=place.section,
            counts=tuple(next(counts) for _ in several),
            least=least,
            join=0 if place.section.component.block else separator,
            per_message=separator + budget.per_message if place.section.dialogue else 0,
            openings=_openings(place, budget, fences),
        )
        for place, several, least in zip(places, texts, leasts, strict=True)
    ]


def _openings(place: Place, budget: Budget, fences: Mapping[str, int]) -> dict[str, int]:
    openings = {}
    if budget.per_message and not place.section.dialogue:
        openings[f"message {place.message}"] = budget.per_message
    if place.section.component.block:
        block = place.section.component.block.id
        openings[f"block {block}"] = fences[block]
    return openings
