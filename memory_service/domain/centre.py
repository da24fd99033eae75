"""The user's own mean μ, and the centred cosine without vectors in memory (RECALL 1.3).

With unit vectors (q−μ)·(v−μ) = q·v − q·μ − v·μ + |μ|² and |v−μ|² = 1 − 2v·μ + |μ|², so one number
v·μ per row is enough once the index has given q·v.
"""

from collections.abc import Mapping
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.columns import grown

Vector = NDArray[np.float32]

_SHRINKAGE = 20
"""μ = mean·N/(N+20): a user with three memories is not centred away."""
_EXACT_BELOW = 50
"""Below so many vectors they are kept, and μ is exact after every write."""
_STALE_SHARE = 0.1
_NOTHING = 1e-9
"""Lengths and squares below this are rounding errors."""


class Centre:
    """μ and v·μ of one user's rows, by slot: one snapshot, over the N rows that had a vector."""

    def __init__(self) -> None:
        self._mean: Vector = np.zeros(0, np.float32)
        self._square = 0.0
        self._typical = 0.0
        """Mean of v·μ at the snapshot: stands in for a row whose vector came later."""
        self._along: NDArray[np.float64] = np.zeros(1)
        self._known: NDArray[np.bool_] = np.zeros(1, np.bool_)
        self._rows = 0
        self._moved = 0
        """Vectors that came or went since the snapshot."""
        self._kept: dict[int, Vector] | None = {}

    def reserve(self, size: int) -> None:
        """Make room for slots below size."""
        self._along = grown(self._along, size)
        self._known = grown(self._known, size)

    def add(self, slot: int, vector: Vector | None) -> None:
        """Enter a row's vector; None, zero and not finite are all no vector."""
        usable = None if vector is None else unit(vector)
        if usable is None:
            return
        self._known[slot] = True
        self._moved += 1
        if self._kept is not None:
            self._kept[slot] = usable
        else:
            self._along[slot] = usable @ self._mean

    def remove(self, slot: int) -> None:
        """Take a row out."""
        if self._known[slot]:
            self._known[slot] = False
            self._moved += 1
            if self._kept is not None:
                del self._kept[slot]

    def knows(self, slot: int) -> bool:
        """Tell whether the row has a vector."""
        return bool(self._known[slot])

    def settle(self) -> None:
        """After writes: take the snapshot anew while the vectors are kept, else change nothing."""
        if self._kept is None or not self._moved:
            return
        self._snapshot(self._kept)
        if len(self._kept) >= _EXACT_BELOW:
            self._kept = None

    def rebuild(self, vectors: Mapping[int, Vector]) -> None:
        """Take the snapshot from these vectors by slot; other rows have none from now on."""
        self._known[:] = False
        self._kept = {}
        for slot, vector in vectors.items():
            self.add(slot, vector)
        self._moved = max(self._moved, 1)
        self.settle()

    @property
    def stale(self) -> bool:
        """Tell whether so much has changed that rebuild is due."""
        if self._kept is not None or not self._moved:
            return False
        rows = int(np.count_nonzero(self._known))
        return rows < _EXACT_BELOW or self._moved >= _STALE_SHARE * self._rows

    def closeness(
        self, query: Vector, slots: NDArray[np.intp], cosines: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Give d in [0,1] of rows by their slots and their raw cosines with a query.

        A row whose vector came after the snapshot is as near to μ as the rows are on average.
        """
        usable = unit(query)
        if usable is None:
            return np.zeros(len(slots))
        if not self._rows:
            return np.maximum(cosines, 0.0)
        across = float(usable @ self._mean)
        along = np.where(self._known[slots], self._along[slots], self._typical)
        dots = cosines - across - along + self._square
        squares = (1 - 2 * across + self._square) * (1 - 2 * along + self._square)
        centred = dots / np.sqrt(np.maximum(squares, _NOTHING))
        return np.minimum(np.maximum(centred, 0.0), 1.0)

    def _snapshot(self, vectors: Mapping[int, Vector]) -> None:
        self._rows = len(vectors)
        self._moved = 0
        if not vectors:
            return
        slots = np.fromiter(vectors, np.intp, len(vectors))
        matrix = np.stack(list(vectors.values()))
        shrunk = matrix.mean(axis=0, dtype=np.float64) * (self._rows / (self._rows + _SHRINKAGE))
        self._mean = shrunk.astype(np.float32)
        self._square = float(self._mean.astype(np.float64) @ self._mean)
        self._along[slots] = matrix @ self._mean
        self._typical = float(self._along[slots].mean())


def unit(vector: Vector) -> Vector | None:
    """Give the vector at unit length, or None if it has no direction."""
    exact = np.asarray(vector, np.float32)
    length = sqrt(float(exact @ exact))
    if not _NOTHING < length < inf:
        return None
    return exact / np.float32(length)
