"""Figures of ranked answers, and tables to print them."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

DEPTHS = (5, 10, 25, 50)


def figures(found: Sequence[str], wanted: AbstractSet[str]) -> dict[str, float]:
    """Give recall at each depth (share of wanted found), MRR, and nDCG@10 with binary gains."""
    ranks = [rank for rank, key in enumerate(found, start=1) if key in wanted]
    result = {f"R@{depth}": sum(r <= depth for r in ranks) / len(wanted) for depth in DEPTHS}
    result["MRR"] = 1 / ranks[0] if ranks else 0.0
    gained = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(wanted)) + 1))
    result["nDCG@10"] = gained / best
    return result


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average each figure over the rows, all of which have the same figures."""
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def quantile(values: Sequence[float], share: float) -> float:
    """Give the value that this share of the values does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay rows out in columns; numbers with three decimals."""
    cells = [list(head), *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
