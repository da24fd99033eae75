"""The order of an answer: what a memory is worth, and how well it fits (SPEC_MEMORY 5.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory_service.domain.model import MemoryType
from memory_service.domain.recall import Candidate, Ranked

_RECENCY = (
    (timedelta(hours=24), 1.0),
    (timedelta(days=7), 0.85),
    (timedelta(days=30), 0.65),
    (timedelta(days=90), 0.45),
)
_OLD = 0.25
_NO_AGE = 0.5


def _type_bonus() -> dict[MemoryType, float]:
    return {
        MemoryType.CONSTRAINT: 0.15,
        MemoryType.PREFERENCE: 0.10,
        MemoryType.TODO_HINT: 0.05,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each part counts. relevance 0 is the Plan's formula, 4 was measured (RECALL)."""

    importance: float = 0.35
    confidence: float = 0.30
    recency: float = 0.20
    explicit: float = 0.10
    same_conversation: float = 0.08
    relevance: float = 4.0
    type_bonus: Mapping[MemoryType, float] = field(default_factory=_type_bonus)
    """A type that is not named has none."""


LEGACY = Weights(
    same_conversation=0.0,
    relevance=0.0,
    type_bonus={MemoryType.CONSTRAINT: 0.12, MemoryType.PREFERENCE: 0.08},
)
"""What the legacy mode ranks SQL rows by."""


def rank(
    candidates: Sequence[Candidate],
    *,
    weights: Weights,
    now: datetime,
    conversation_id: str = "",
) -> list[Ranked]:
    """Score and sort candidates, the highest score first, ties by memory_id desc."""
    ages = _ages(now)
    ranked = [_ranked(candidate, weights, ages, conversation_id) for candidate in candidates]
    return sorted(ranked, key=lambda r: (r.score, r.candidate.memory.memory_id), reverse=True)


def recency(update_time: datetime | None, now: datetime) -> float:
    """Give 0.25..1 by age; 0.5 for a time that is missing or in the future."""
    return _worth(update_time, _ages(now))


@dataclass(frozen=True, slots=True)
class _Ages:
    """Now, and since when a time is worth how much: worked out once for all candidates."""

    now: datetime
    since: tuple[tuple[datetime, float], ...]


def _ages(now: datetime) -> _Ages:
    return _Ages(now, tuple((now - limit, worth) for limit, worth in _RECENCY))


def _worth(update_time: datetime | None, ages: _Ages) -> float:
    if update_time is None or update_time > ages.now:
        return _NO_AGE
    for since, worth in ages.since:
        if update_time >= since:
            return worth
    return _OLD


def _ranked(candidate: Candidate, weights: Weights, ages: _Ages, conversation_id: str) -> Ranked:
    memory = candidate.memory
    here = bool(conversation_id) and memory.conversation_id == conversation_id
    parts = {
        "importance": weights.importance * memory.importance,
        "confidence": weights.confidence * memory.confidence,
        "recency": weights.recency * _worth(memory.update_time, ages),
        "explicit": weights.explicit * memory.is_explicit,
        "same_conversation": weights.same_conversation * here,
        "type_bonus": weights.type_bonus.get(memory.memory_type, 0.0),
        "relevance": weights.relevance * candidate.relevance,
    }
    return Ranked(candidate=candidate, score=sum(parts.values()), score_parts=parts)
