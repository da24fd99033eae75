"""One relevance in [0,1) from keywords, vectors and the turns around a turn (RECALL 1.4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.centre import Vector
from memory_service.domain.recall import Leg

SEMANTIC_LIMIT = 200
"""So many rows with the highest cosines count as found by the semantic leg."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: its words, its vector, and raw cosines by memory_id as the index gave them.

    Rows that are not among the cosines have no vector part. vector None: no embedder, no vector
    part for any row.
    """

    text: str
    vector: Vector | None = None
    cosines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of each row, by slot; slot 0 is nobody: zero in every column."""

    keywords: Numbers
    vector: Numbers
    coverage: float
    previous: NDArray[np.intp]
    following: NDArray[np.intp]
    asks: NDArray[np.bool_]
    named: NDArray[np.bool_] | None
    """None: no speaker is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of relevance by slot; own, near, peak and name add up to −ln(1 − score)."""

    keywords: Numbers
    vector: Numbers
    own: Numbers
    near: Numbers
    peak: Numbers
    name: Numbers
    coverage: float
    weight: float


def relevance(given: Evidence) -> Parts:
    """Weigh the evidence. The numbers are measured ones, see RECALL 3."""
    words, vectors = given.keywords, given.vector
    weight = 0.25 + 1.6 * (1 - given.coverage)
    linked = (given.previous + given.following) > 0
    share = np.where(linked, 1.0, 1.5)
    share[given.asks & (given.following > 0)] = 0.5
    near = peak = name = np.zeros_like(words)
    if linked.any():
        near, peak = _around(words, words + 0.4 * vectors, given)
        peak *= linked
    if given.named is not None:
        name = np.where(given.named, 0.05, 0.0)
    return Parts(
        keywords=words,
        vector=vectors,
        own=(words + weight * vectors) * share,
        near=near,
        peak=peak,
        name=name,
        coverage=given.coverage,
        weight=weight,
    )


def _around(words: Numbers, evidence: Numbers, given: Evidence) -> tuple[Numbers, Numbers]:
    """Give near and peak.

    near sums what the neighbours know; a question hands its evidence to the turn that answers it.
    peak is half of the most that the row or a neighbour up to three links away holds.
    """
    previous, following = given.previous, given.following
    before, after = previous[previous], following[following]
    near = 0.3 * (evidence[before] + evidence[after]) + 0.2 * evidence[following]
    near += 0.5 * (evidence * given.asks)[previous]
    highest = np.maximum(words, np.maximum(words[previous], words[following]))
    # The highest of three in a row, looked up two links away, reaches as far as the third.
    highest = np.maximum(highest, np.maximum(highest[before], highest[after]))
    return near, 0.5 * highest


class ScoredRow(NamedTuple):
    """A row that fits to some degree: score in (0,1), keyword part c, vector part d."""

    memory_id: str
    score: float
    c: float
    d: float
    legs: frozenset[Leg]
    """SEMANTIC if among the 200 highest cosines; KEYWORD if c > 0, or if only neighbours or the
    speaker's name lifted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The rows with a score above 0: by score desc, ties by id desc. Columns are in that order."""

    ids: Sequence[str]
    scores: Numbers
    c: Numbers
    d: Numbers
    n: int
    """How many rows were scored, those with score 0 included."""
    max_cosine: float | None
    """The highest raw cosine among them; None without an embedder or without vectors."""
    found: NDArray[np.bool_]
    """Which rows are among the 200 highest cosines."""
    _parts: Parts
    _slots: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[ScoredRow]:
        return iter(self.rows())

    def rows(self, limit: int | None = None) -> list[ScoredRow]:
        """Give the best rows, all without a limit."""
        columns = (self.scores[:limit], self.c[:limit], self.d[:limit], self.found[:limit])
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        return [
            ScoredRow(memory_id, score, c, d, _LEGS[found, c > 0])
            for memory_id, (score, c, d, found) in zip(self.ids[:limit], numbers, strict=True)
        ]

    def explain(self, position: int) -> dict[str, float]:
        """Give the parts of the row at a position of this order, under the contract's names."""
        slot, parts = self._slots[position], self._parts
        return {
            "keywords": float(parts.keywords[slot]),
            "vector": float(parts.vector[slot]),
            "coverage": parts.coverage,
            "weight": parts.weight,
            "own": float(parts.own[slot]),
            "near": float(parts.near[slot]),
            "peak": float(parts.peak[slot]),
            "name": float(parts.name[slot]),
        }


_LEGS = {
    (False, False): frozenset({Leg.KEYWORD}),
    (False, True): frozenset({Leg.KEYWORD}),
    (True, False): frozenset({Leg.SEMANTIC}),
    (True, True): frozenset({Leg.KEYWORD, Leg.SEMANTIC}),
}


def exact_cosines(ids: Sequence[str], matrix: Vector, query: Vector) -> dict[str, float]:
    """Give the raw cosine of a query with each row of a matrix, which ids name in order.

    Rows without a direction (zero, not finite) are left out; a query without one gives nothing.
    """
    if not len(ids):
        return {}
    rows = np.asarray(matrix, np.float32)
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.sqrt(query @ query)
        cosines = (rows @ query) / lengths
    usable = np.isfinite(cosines) & (lengths > 0)
    clipped = np.clip(cosines, -1.0, 1.0).tolist()
    return {
        memory_id: cosine
        for memory_id, cosine, keep in zip(ids, clipped, usable.tolist(), strict=True)
        if keep
    }
