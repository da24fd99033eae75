"""How much of the ranked rows an answer holds; every row left out is counted by its reason."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from memory_service.domain.model import MemoryType
from memory_service.domain.recall import Candidate, Dropped, DropReason, Ranked, TypeBudgets
from memory_service.domain.size import estimated_bytes, estimated_tokens

Kept = tuple[list[Ranked], list[Dropped]]
"""What stays, in rank order, and what was left out."""


def screen(
    candidates: Sequence[Candidate], *, min_relevance: float
) -> tuple[list[Candidate], list[Dropped]]:
    """Leave out what the cut holds back, then what is below min_relevance; never a pinned row."""
    kept: list[Candidate] = []
    dropped: list[Dropped] = []
    for candidate in candidates:
        memory_id = candidate.memory.memory_id
        if candidate.pinned:
            kept.append(candidate)
        elif candidate.held_back:
            dropped.append(Dropped(memory_id=memory_id, reason=DropReason.CUT))
        elif candidate.relevance < min_relevance:
            dropped.append(Dropped(memory_id=memory_id, reason=DropReason.BELOW_MIN_RELEVANCE))
        else:
            kept.append(candidate)
    return kept, dropped


def within_types(ranked: Sequence[Ranked], budgets: TypeBudgets) -> Kept:
    """Keep the best of each type up to its budget; an unknown type counts as a fact."""
    most = {
        MemoryType.CONSTRAINT: budgets.constraint,
        MemoryType.PREFERENCE: budgets.preference,
        MemoryType.TODO_HINT: budgets.todo_hint,
    }
    taken: Counter[MemoryType] = Counter()

    def fits(row: Ranked) -> bool:
        known = row.candidate.memory.memory_type
        counted = known if known in most else MemoryType.FACT
        taken[counted] += 1
        return taken[counted] <= most.get(counted, budgets.fact)

    return _split(ranked, [row for row in ranked if fits(row)], DropReason.TYPE_BUDGET)


def within_limit(ranked: Sequence[Ranked], limit: int) -> Kept:
    """Keep at most limit rows, constraints before all others. 0: all."""
    return _split(ranked, _by_priority(ranked)[: limit or None], DropReason.LIMIT)


def first(ranked: Sequence[Ranked], limit: int) -> Kept:
    """Keep the first limit rows, whatever their type."""
    return _split(ranked, ranked[:limit], DropReason.LIMIT)


def within_tokens(ranked: Sequence[Ranked], budget: int) -> Kept:
    """Keep whole rows of at most so many estimated tokens together, see _within. 0: all."""
    if not budget:
        return list(ranked), []
    return _within(ranked, budget, estimated_tokens, DropReason.TOKEN_BUDGET)


def within_bytes(ranked: Sequence[Ranked], budget: int) -> Kept:
    """Keep whole rows whose encoding fits into so many bytes together, see _within."""
    return _within(ranked, budget, estimated_bytes, DropReason.RESPONSE_BYTES)


def _within(
    ranked: Sequence[Ranked], budget: int, size_of: Callable[[Ranked], int], reason: DropReason
) -> Kept:
    """Let rows leave from the lowest rank up, constraints last, until the rest fits.

    A row that alone is too large leaves at once, so that it does not empty the answer.
    """
    sizes = {row.candidate.memory.memory_id: size_of(row) for row in ranked}
    kept = [row for row in _by_priority(ranked) if sizes[row.candidate.memory.memory_id] <= budget]
    total = sum(sizes[row.candidate.memory.memory_id] for row in kept)
    while kept and total > budget:
        total -= sizes[kept.pop().candidate.memory.memory_id]
    return _split(ranked, kept, reason)


def _by_priority(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Put constraints before all others, each in rank order."""
    return sorted(ranked, key=_is_no_constraint)


def _is_no_constraint(row: Ranked) -> bool:
    return row.candidate.memory.memory_type is not MemoryType.CONSTRAINT


def _split(ranked: Sequence[Ranked], kept: Iterable[Ranked], reason: DropReason) -> Kept:
    """Give the kept rows in rank order, and the others as dropped."""
    ids = {row.candidate.memory.memory_id for row in kept}
    stay = [row for row in ranked if row.candidate.memory.memory_id in ids]
    leave = [row for row in ranked if row.candidate.memory.memory_id not in ids]
    return stay, [Dropped(memory_id=r.candidate.memory.memory_id, reason=reason) for r in leave]
