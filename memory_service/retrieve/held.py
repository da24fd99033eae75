"""What a process holds of one user between requests: the working set and some embeddings."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

import numpy as np

from memory_service.domain.model import Memory, MemoryStatus
from memory_service.domain.relevance import exact_cosines
from memory_service.domain.working_set import WorkingSet
from memory_service.ports import StoredRow, Vector


@dataclass(slots=True)
class Held:
    """For the event loop's thread, once built.

    vectors: the stored embeddings of the rows that the index may not know yet, or of all rows
    (whole); None where a row is known to have no usable one. bare: rows of which the working set
    has not seen an embedding, but for those that need none.
    """

    working: WorkingSet
    vectors: dict[str, Vector | None]
    whole: bool
    bare: set[str]
    _matrix: tuple[list[str], Vector] | None = None

    @classmethod
    def build(
        cls, rows: Sequence[StoredRow], *, revision: int, total: int, keep: AbstractSet[str] | None
    ) -> Self:
        """Hold active rows, total that the user has; keep: whose vectors (None: all)."""
        pairs = [(row.memory, row.vector) for row in rows]
        kept = {
            row.memory.memory_id: row.vector
            for row in rows
            if row.vector is not None and (keep is None or row.memory.memory_id in keep)
        }
        return cls(
            working=WorkingSet.build(pairs, revision=revision, total=total),
            vectors=dict(kept),
            whole=keep is None,
            bare={row.memory.memory_id for row in rows if _is_bare(row)},
        )

    @property
    def nbytes(self) -> int:
        """Estimate the memory taken."""
        one = next((vector.nbytes for vector in self.vectors.values() if vector is not None), 0)
        return self.working.nbytes + one * len(self.vectors)

    def enter(self, changes: Sequence[StoredRow], *, revision: int) -> None:
        """Follow the user's changes up to a revision."""
        self.working.apply([(row.memory, row.vector) for row in changes], revision=revision)
        for row in changes:
            memory_id = row.memory.memory_id
            self.vectors.pop(memory_id, None)
            self.bare.discard(memory_id)
            if row.memory.status is MemoryStatus.ACTIVE:
                if row.vector is not None:
                    self.vectors[memory_id] = row.vector
                elif _is_bare(row):
                    self.bare.add(memory_id)
        self._matrix = None

    def learn(self, rows: Iterable[tuple[Memory, Vector | None]]) -> None:
        """Take embeddings that came after their rows, unless the row has changed since."""
        current = [(row, vector) for row, vector in rows if self._is_current(row)]
        self.vectors.update({row.memory_id: vector for row, vector in current})
        came = [(row, vector) for row, vector in current if vector is not None]
        news = [(row, vector) for row, vector in came if row.memory_id in self.bare]
        self.working.apply(news, revision=self.working.revision)
        self.bare.difference_update(row.memory_id for row, _ in news)
        self._matrix = None

    def hold_all(self, rows: Sequence[StoredRow]) -> None:
        """Take all stored embeddings, for as long as the index is not to be asked."""
        self.learn((row.memory, row.vector) for row in rows)
        self.whole = True

    def prune(self, untold: Mapping[str, object]) -> None:
        """Let go of the embeddings that the index knows by now."""
        if not self.whole:
            for memory_id in [one for one in self.vectors if one not in untold]:
                del self.vectors[memory_id]

    def cosines(self, query: Vector, ids: Iterable[str] | None = None) -> dict[str, float]:
        """Give the raw cosines of the rows whose embeddings are here; ids None: of all."""
        if ids is None:
            self._matrix = self._matrix or _stacked(self.vectors, self.vectors)
            return exact_cosines(*self._matrix, query)
        return exact_cosines(*_stacked(ids, self.vectors), query)

    def _is_current(self, memory: Memory) -> bool:
        mine = self.working.memory(memory.memory_id)
        return mine is not None and mine.revision == memory.revision


def _is_bare(row: StoredRow) -> bool:
    return row.vector is None and not row.memory.supports_only


def _stacked(ids: Iterable[str], vectors: Mapping[str, Vector | None]) -> tuple[list[str], Vector]:
    known = [(one, vector) for one in ids if (vector := vectors.get(one)) is not None]
    matrix = np.stack([vector for _, vector in known]) if known else np.zeros((0, 0), np.float32)
    return [one for one, _ in known], matrix
