"""From what the legs brought to an answer: merge, gate, dedup, screen, rank, budget, count."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory_service.domain.budget import Kept, screen, within_limit, within_tokens, within_types
from memory_service.domain.dedup import dedup
from memory_service.domain.gate import Gate
from memory_service.domain.merge import allowed
from memory_service.domain.model import IndexState, Memory
from memory_service.domain.rank import Weights, rank
from memory_service.domain.recall import Answer, Candidate, LegState, Query, Ranked, Source

ROWS_CUT = "rows_cut"

Order = Callable[[Sequence[Candidate]], list[Ranked]]
Budget = Callable[[Sequence[Ranked]], Kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What the legs brought, merged; refused: rows that they named and that are not to be had."""

    candidates: Sequence[Candidate]
    sources: Sequence[Source]
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What SQL said in the snapshot that the answer stands for."""

    gate: Gate
    revision: int
    untold: Mapping[str, IndexState] = field(default_factory=dict)


def hybrid(query: Query, known: Known, brought: Brought, weights: Weights) -> Answer:
    """Order by score; hold the budgets of the types, then the limit, then the tokens."""
    order: Order = lambda candidates: rank(  # noqa: E731 — named for what it is
        candidates, weights=weights, now=known.gate.now, conversation_id=query.conversation_id
    )
    budgets: Sequence[Budget] = (
        lambda ranked: within_types(ranked, query.budgets),
        lambda ranked: within_limit(ranked, query.limit),
        lambda ranked: within_tokens(ranked, query.token_budget),
    )
    return compose(query, known, brought, order, budgets)


def compose(
    query: Query, known: Known, brought: Brought, order: Order, budgets: Sequence[Budget]
) -> Answer:
    """Give the answer; allowed = returned + all dropped, each dropped row with its reason."""
    candidates = allowed(known.gate, brought.candidates)
    survivors, dropped = dedup(candidates)
    fitting, out = screen(survivors, min_relevance=query.min_relevance)
    dropped += out
    items = order(fitting)
    for budget in budgets:
        items, out = budget(items)
        dropped += out
    return Answer(
        items=[_as_indexed(item, known) for item in items],
        sources=brought.sources,
        degraded=any(map(_weaker, brought.sources)),
        revision=known.revision,
        stage_counts={
            "merged": len(brought.candidates) + brought.refused,
            "allowed": len(candidates),
            "deduplicated": len(survivors),
            "returned": len(items),
        },
        dropped=dropped,
        pinned_total=sum(candidate.pinned for candidate in candidates),
        pinned_returned=sum(item.candidate.pinned for item in items),
    )


def _weaker(source: Source) -> bool:
    """Tell whether a weaker source answered; rows beyond a user's first 20,000 are no failure."""
    if source.state is LegState.DEGRADED:
        return source.reason != ROWS_CUT
    return source.state is LegState.FAILED


def _as_indexed(item: Ranked, known: Known) -> Ranked:
    """Say what the index knows of the row: a working set does not hear of it, the outbox does."""
    memory = item.candidate.memory
    told = memory.revision <= known.revision and memory.memory_id not in known.untold
    state = IndexState.SYNCED if told else known.untold.get(memory.memory_id, IndexState.PENDING)
    return replace(item, candidate=replace(item.candidate, memory=_in_state(memory, state)))


def _in_state(memory: Memory, state: IndexState) -> Memory:
    return memory if memory.index_state is state else replace(memory, index_state=state)
