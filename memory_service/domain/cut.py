"""The cut: holding back searched rows when nothing fits (RECALL 8). Pinned rows never come here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import log

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.centre import Vector, unit
from memory_service.domain.recall import Cut
from memory_service.domain.relevance import Scored
from memory_service.domain.small_talk import is_small_talk

__all__ = ["CutResult", "Rule", "Ruler", "cut", "is_small_talk", "make_ruler"]

_SPEAKS_OF_SELF = re.compile(r"(?<!\w)(?:i|my|me|mine|we|our|us)(?!\w)|[我咱]", re.IGNORECASE)
_NEAREST_IN_BANK = 3
_NO_SPREAD = 1e-6


class Rule(StrEnum):
    """Which rule held rows back: ROWS some of them, the others all."""

    NONE = ""
    SMALL_TALK = "small_talk"
    ZERO = "zero"
    GATE = "gate"
    ROWS = "rows"


@dataclass(frozen=True, slots=True, eq=False)
class Ruler:
    """How near unrelated messages are to each other in an embedder's eyes, and which they are."""

    mean: float
    deviation: float
    bank: Vector
    """Unit vectors, one message per row."""


@dataclass(frozen=True, slots=True)
class CutResult:
    """What is left, in the order of relevance, and why; n - len(kept) rows are held back."""

    kept: Sequence[str]
    rule: Rule
    parts: Mapping[str, float] = field(default_factory=dict)
    """G, x, y and theta if the gate was asked."""


@dataclass(frozen=True, slots=True)
class _Mode:
    theta: float
    score_share: float = 0.0
    vector_share: float = 0.0


_MODES = {
    Cut.GATE: _Mode(0.04),
    Cut.TIGHT: _Mode(0.04, 0.5, 0.5),
    Cut.STRICT: _Mode(0.08, 0.6, 0.7),
}


def make_ruler(bank_vectors: Vector) -> Ruler:
    """Measure the pairwise raw cosines of a bank's vectors: mean and population deviation.

    Vectors without a direction are left out. An embedder that sees no differences gets deviation
    0, and cut asks no gate.
    """
    usable = [vector for vector in map(unit, bank_vectors) if vector is not None]
    if len(usable) < _NEAREST_IN_BANK:
        return Ruler(0.0, 0.0, np.zeros((0, 0), np.float32))
    bank = np.stack(usable)
    pairs = (bank @ bank.T)[np.triu_indices(len(bank), k=1)].astype(np.float64)
    return Ruler(float(pairs.mean()), float(pairs.std()), bank)


def cut(
    scored: Scored, text: str, vector: Vector | None, ruler: Ruler | None, mode: Cut
) -> CutResult:
    """Keep the rows that fit the question as hard as the mode says.

    Small talk and rows with score 0 are out in every mode. Without an embedder, a ruler or a row
    with a vector the gate is not asked.
    """
    if is_small_talk(text):
        return CutResult((), Rule.SMALL_TALK)
    if not len(scored):
        return CutResult((), Rule.ZERO)
    hardness = _MODES.get(mode)
    if hardness is None:
        return CutResult(scored.ids, Rule.NONE)
    parts = _gate(scored, text, vector, ruler)
    if parts:
        parts["theta"] = hardness.theta
        if parts["G"] < hardness.theta:
            return CutResult((), Rule.GATE, parts)
    keep = _fitting(scored, hardness)
    kept = [scored.ids[position] for position in np.flatnonzero(keep).tolist()]
    return CutResult(kept, Rule.NONE if keep.all() else Rule.ROWS, parts)


def _gate(
    scored: Scored, text: str, vector: Vector | None, ruler: Ruler | None
) -> dict[str, float]:
    """Give G and what it is made of; nothing if it has no meaning here."""
    query = None if vector is None else unit(vector)
    if query is None or scored.max_cosine is None or ruler is None or ruler.deviation < _NO_SPREAD:
        return {}
    x = (scored.max_cosine - ruler.mean) / ruler.deviation
    nearest = np.sort(ruler.bank @ query)[-_NEAREST_IN_BANK:]
    y = (float(nearest.mean()) - ruler.mean) / ruler.deviation
    total = float(scored.scores[0]) + 0.1 * (x - 0.8 * y) - 0.05 * log(scored.n)
    if _SPEAKS_OF_SELF.search(text):
        total += 0.05
    return {"G": total, "x": x, "y": y}


def _fitting(scored: Scored, hardness: _Mode) -> NDArray[np.bool_]:
    """Keep what comes near the best score or, where there is any, the best vector part."""
    keep: NDArray[np.bool_] = scored.scores >= hardness.score_share * scored.scores[0]
    highest = scored.d.max()
    if highest > 0:
        keep |= scored.d >= hardness.vector_share * highest
    return keep
