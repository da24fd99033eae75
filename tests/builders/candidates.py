"""Candidates and ranked rows for the pure stages, drawn by hand or by hypothesis."""

from datetime import timedelta

from hypothesis import strategies as st

from memory_service.domain.model import MemoryType
from memory_service.domain.rank import Weights, rank
from memory_service.domain.recall import Candidate, Leg, Ranked
from tests.builders.memories import NOW, memory

ALL_LEGS = (Leg.PINNED, Leg.SEMANTIC, Leg.KEYWORD)


def candidate(
    memory_id: str = "m1",
    content: str | None = None,
    *,
    legs: frozenset[Leg] = frozenset({Leg.KEYWORD}),
    relevance: float = 0.0,
    held_back: bool = False,
    **more: object,
) -> Candidate:
    """Build a candidate; more are fields of its memory."""
    row = memory(memory_id, content, **more)  # type: ignore[arg-type]
    return Candidate(
        memory=row,
        legs=legs,
        relevance=relevance,
        relevance_parts={"own": relevance},
        held_back=held_back,
    )


def ranked(*candidates: Candidate) -> list[Ranked]:
    """Rank with the default weights."""
    return rank(candidates, weights=Weights(), now=NOW)


_UNIT = st.floats(0, 1)
_FEW = st.sampled_from


@st.composite
def candidates(draw: st.DrawFn) -> Candidate:
    """Draw candidates that are often equal in id, hash or text."""
    memory_id = f"m{draw(st.integers(1, 8))}"
    return candidate(
        memory_id,
        draw(_FEW(["Likes tea", "likes  TEA", "Likes coffee", "Lives in 上海", "x" * 400])),
        legs=draw(st.frozensets(_FEW(ALL_LEGS), min_size=1)),
        relevance=draw(_UNIT),
        held_back=draw(st.booleans()),
        memory_type=draw(_FEW(MemoryType)),
        importance=draw(_FEW([0.0, 0.5, 1.0])),
        confidence=draw(_FEW([0.0, 0.5, 1.0])),
        age=timedelta(days=draw(st.integers(0, 200))),
        is_explicit=draw(st.booleans()),
    )


@st.composite
def distinct_ranked(draw: st.DrawFn) -> list[Ranked]:
    """Draw ranked rows, no two of one id."""
    drawn = draw(st.lists(candidates(), max_size=40))
    rows = [
        candidate(
            f"m{number:02}",
            one.memory.content,
            legs=one.legs,
            relevance=one.relevance,
            memory_type=one.memory.memory_type,
            importance=one.memory.importance,
        )
        for number, one in enumerate(drawn)
    ]
    return ranked(*rows)
