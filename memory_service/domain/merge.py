"""Bringing together what the legs found: pinned rows first, then searched ones, best first."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from memory_service.domain.gate import Gate, allows
from memory_service.domain.model import Memory
from memory_service.domain.recall import Candidate, Leg
from memory_service.domain.relevance import Scored

_PINNED = frozenset({Leg.PINNED})


def searched(
    scored: Scored,
    memory_of: Callable[[str], Memory | None],
    *,
    kept: Iterable[str],
    cut_parts: Mapping[str, float] | None = None,
) -> list[Candidate]:
    """Make candidates of scored rows; those that are not among the kept ones are held back.

    cut_parts: explain, and add these to each row's own parts. None: no parts.
    """
    fitting = frozenset(kept)
    return [
        Candidate(
            memory=memory,
            legs=row.legs,
            relevance=row.score,
            relevance_parts={} if cut_parts is None else {**scored.explain(position), **cut_parts},
            held_back=row.memory_id not in fitting,
        )
        for position, row in enumerate(scored)
        if (memory := memory_of(row.memory_id)) is not None
    ]


def merge(pinned: Sequence[Memory], found: Sequence[Candidate]) -> list[Candidate]:
    """Put pinned rows before searched ones; a row that both brought is there twice."""
    return [Candidate(memory=memory, legs=_PINNED) for memory in pinned] + list(found)


def allowed(gate: Gate, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep what the gate allows: the last look at owner, status, time, settings and types."""
    return [candidate for candidate in candidates if allows(gate, candidate.memory)]
