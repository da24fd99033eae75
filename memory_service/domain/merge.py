"""Bringing together what the legs found: pinned rows first, then searched ones, best first."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from memory_service.domain.gate import Gate, allows
from memory_service.domain.model import Memory, MemoryType
from memory_service.domain.recall import Candidate, Leg
from memory_service.domain.relevance import Scored

MOST_OF_A_TYPE = 200
"""So many rows of each type are brought: no budget is larger."""
MOST_LOOKED_AT = 1_000
"""They are the best ones among so many."""

_PINNED = frozenset({Leg.PINNED})


def searched(
    scored: Scored,
    memory_of: Callable[[str], Memory | None],
    *,
    kept: Iterable[str],
    cut_parts: Mapping[str, float] | None = None,
) -> list[Candidate]:
    """Make candidates of scored rows, best first; those not among the kept ones are held back.

    At most MOST_OF_A_TYPE of each type, an unknown type by itself. cut_parts: explain, and add
    these to each row's own parts; None: no parts.
    """
    fitting = frozenset(kept)
    brought: Counter[MemoryType] = Counter()
    candidates = []
    for position, row in enumerate(scored.rows(MOST_LOOKED_AT)):
        memory = memory_of(row.memory_id)
        if memory is None or brought[memory.memory_type] == MOST_OF_A_TYPE:
            continue
        brought[memory.memory_type] += 1
        parts = {} if cut_parts is None else {**scored.explain(position), **cut_parts}
        candidates.append(
            Candidate(
                memory=memory,
                legs=row.legs,
                relevance=row.score,
                relevance_parts=parts,
                held_back=row.memory_id not in fitting,
            )
        )
    return candidates


def merge(pinned: Sequence[Memory], found: Sequence[Candidate]) -> list[Candidate]:
    """Put pinned rows before searched ones; a row that both brought is there twice."""
    return [Candidate(memory=memory, legs=_PINNED) for memory in pinned] + list(found)


def allowed(gate: Gate, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep what the gate allows: the last look at owner, status, time, settings and types."""
    return [candidate for candidate in candidates if allows(gate, candidate.memory)]
