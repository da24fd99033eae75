"""What is known of all active rows of one user, so that a question costs no read of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from sys import getsizeof
from typing import Self

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.centre import Centre, Vector
from memory_service.domain.columns import grown
from memory_service.domain.model import Memory, MemoryStatus
from memory_service.domain.postings import Postings
from memory_service.domain.relevance import (
    SEMANTIC_LIMIT,
    Evidence,
    Question,
    Scored,
    relevance,
)
from memory_service.domain.text import indexed_text
from memory_service.domain.turns import Turns
from memory_service.domain.words import tokens

Change = tuple[Memory, Vector | None]
"""A memory in any status, and its embedding if there is one."""

Allowed = Callable[[Memory], bool] | AbstractSet[str] | None
"""Which rows may score: a gate, the ids that passed one, or all."""

_ROW_BYTES = 1_700
"""A memory without its texts, its entries in every column and dictionary: measured."""
_POSTING_BYTES = 30
"""A posting and its share of the vocabulary: measured."""
_RANK_BITS = 32


class WorkingSet:
    """Statistics and links over all active rows of one user; for one thread at a time.

    Slots number the rows; slot 0 is nobody. A request's gates decide which rows score, and a row
    that does not is nobody's neighbour; the statistics are over all rows all the same.
    """

    def __init__(self, *, revision: int, text: Callable[[Memory], str] = indexed_text) -> None:
        """Begin with no rows; text is what is searched of a memory."""
        self.revision = revision
        self.rows_cut = False
        """The user has more rows than this holds."""
        self.nbytes = 0
        """Estimate of the memory taken."""
        self._text = text
        self._slots: dict[str, int] = {}
        self._memories: list[Memory | None] = [None]
        self._ids: list[str] = [""]
        self._free: list[int] = []
        self._ranks: NDArray[np.int64] = np.zeros(1, np.int64)
        self._last_id = ""
        self._next_rank = 0
        self._ranked = True
        self._postings = Postings()
        self._turns = Turns()
        self._centre = Centre()

    @classmethod
    def build(
        cls,
        rows: Sequence[Change],
        *,
        revision: int,
        total: int,
        text: Callable[[Memory], str] = indexed_text,
    ) -> Self:
        """Hold these active rows, of total that the user has."""
        built = cls(revision=revision, text=text)
        built.apply(sorted(rows, key=lambda row: row[0].memory_id), revision=revision)
        built.rows_cut = total > len(rows)
        return built

    def apply(self, changes: Sequence[Change], *, revision: int) -> None:
        """Enter active rows anew and take the others out, in place; the last of an id counts."""
        last = {memory.memory_id: (memory, vector) for memory, vector in changes}
        for memory, vector in last.values():
            self._remove(memory.memory_id)
            if memory.status is MemoryStatus.ACTIVE:
                self._add(memory, vector)
        self._centre.settle()
        self.revision = revision

    @property
    def stale_mean(self) -> bool:
        """Tell whether μ has to be rebuilt with set_mean.

        So it is when a tenth of the vectors has changed since the last time, or when fewer than 50
        are left of more; below 50, μ is exact at every write by itself.
        """
        return self._centre.stale

    def set_mean(self, vectors: Mapping[str, Vector]) -> None:
        """Rebuild μ from the stored embeddings; rows without one here have none from now on."""
        slots = self._slots
        self._centre.rebuild(
            {slots[one]: vector for one, vector in vectors.items() if one in slots}
        )

    def __len__(self) -> int:
        return len(self._slots)

    def memory(self, memory_id: str) -> Memory | None:
        """Give an active row."""
        return self._memories[self._slots.get(memory_id, 0)]

    def memories(self) -> Iterator[Memory]:
        """Give all active rows, in no promised order."""
        return iter([memory for memory in self._memories if memory is not None])

    def without_vector(self) -> frozenset[str]:
        """Give the rows whose embedding was not known when they were entered."""
        return frozenset(one for one, slot in self._slots.items() if not self._centre.knows(slot))

    def score(self, question: Question, allowed: Allowed = None) -> Scored:
        """Score the allowed rows against a question."""
        size = len(self._memories)
        mask = self._mask(allowed)
        keywords, coverage = self._postings.evidence(tokens(question.text), size)
        cosines = self._cosines(question, mask)
        vectors = np.zeros(size)
        if question.vector is not None:
            vectors = self._centre.closeness(question.vector, cosines)
        parts = relevance(
            Evidence(
                keywords=keywords * mask,
                vector=vectors * mask,
                coverage=coverage,
                previous=_only(mask, self._turns.previous[:size]),
                following=_only(mask, self._turns.following[:size]),
                asks=self._turns.asks[:size],
                named=self._turns.named(question.text, size),
            )
        )
        scores = -np.expm1(-(parts.own + parts.near + parts.peak + parts.name))
        order = self._order(scores, np.flatnonzero(mask & (scores > 0)))
        ids = self._ids
        return Scored(
            ids=[ids[slot] for slot in order.tolist()],
            scores=scores[order],
            c=parts.keywords[order],
            d=parts.vector[order],
            n=int(np.count_nonzero(mask)),
            max_cosine=_highest(cosines),
            found=_nearest(cosines)[order],
            _parts=parts,
            _slots=order,
        )

    def _add(self, memory: Memory, vector: Vector | None) -> None:
        slot = self._free.pop() if self._free else len(self._memories)
        if slot == len(self._memories):
            self._memories.append(None)
            self._ids.append("")
            self._reserve(slot + 1)
        self._slots[memory.memory_id] = slot
        self._memories[slot] = memory
        self._ids[slot] = memory.memory_id
        self._rank(slot, memory.memory_id)
        different = self._postings.add(slot, tokens(self._text(memory)))
        self._turns.add(slot, memory)
        self._centre.add(slot, vector)
        self.nbytes += _bytes(memory) + different * _POSTING_BYTES

    def _remove(self, memory_id: str) -> None:
        slot = self._slots.pop(memory_id, 0)
        memory = self._memories[slot]
        if memory is None:
            return
        different = self._postings.remove(slot, tokens(self._text(memory)))
        self._turns.remove(slot, memory)
        self._centre.remove(slot)
        self.nbytes -= _bytes(memory) + different * _POSTING_BYTES
        self._memories[slot] = None
        self._ids[slot] = ""
        self._free.append(slot)

    def _reserve(self, size: int) -> None:
        self._ranks = grown(self._ranks, size)
        self._postings.reserve(size)
        self._turns.reserve(size)
        self._centre.reserve(size)

    def _rank(self, slot: int, memory_id: str) -> None:
        """Give the id its place in the order of ids; above all others, as is usual, at no cost."""
        if memory_id > self._last_id:
            self._last_id = memory_id
            self._next_rank += 1
            self._ranks[slot] = self._next_rank
        else:
            self._ranked = False

    def _mask(self, allowed: Allowed) -> NDArray[np.bool_]:
        memories = self._memories
        if allowed is None:
            told = (memory is not None for memory in memories)
        elif callable(allowed):
            told = (memory is not None and allowed(memory) for memory in memories)
        else:
            told = (one in allowed for one in self._ids)
        mask = np.fromiter(told, np.bool_, len(memories))
        mask[0] = False
        return mask

    def _cosines(self, question: Question, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Give the raw cosines by slot; NaN where there is none or the row may not score."""
        column = np.full(len(mask), np.nan)
        if question.vector is None:
            return column
        known = self._slots
        slots = [known.get(one, 0) for one in question.cosines]
        column[slots] = np.clip(list(question.cosines.values()), -1.0, 1.0)
        column[~mask] = np.nan
        return column

    def _order(self, scores: NDArray[np.float64], slots: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sort slots by score desc, equal scores by id desc."""
        if not self._ranked:
            by_id = sorted(self._slots.values(), key=self._ids.__getitem__)
            self._ranks[by_id] = np.arange(1, len(by_id) + 1)
            self._last_id, self._next_rank = self._ids[by_id[-1]], len(by_id)
            self._ranked = True
        order = slots[np.argsort(-scores[slots])]
        ordered = scores[order]
        group = np.cumsum(np.diff(ordered, prepend=ordered[:1]) != 0)
        return order[np.argsort((group << _RANK_BITS) - self._ranks[order])]


def _only(mask: NDArray[np.bool_], links: NDArray[np.intp]) -> NDArray[np.intp]:
    """Cut the links to and from rows that may not score."""
    return np.where(mask & mask[links], links, 0)


def _highest(cosines: NDArray[np.float64]) -> float | None:
    known = cosines[~np.isnan(cosines)]
    return float(known.max()) if known.size else None


def _nearest(cosines: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which rows are among the highest cosines; equal to the last of them counts as among."""
    known = ~np.isnan(cosines)
    if np.count_nonzero(known) <= SEMANTIC_LIMIT:
        return known
    ranked = np.where(known, cosines, -np.inf)
    bound = np.partition(ranked, -SEMANTIC_LIMIT)[-SEMANTIC_LIMIT]
    among: NDArray[np.bool_] = ranked >= bound
    return among


def _bytes(memory: Memory) -> int:
    return _ROW_BYTES + getsizeof(memory.content) + getsizeof(memory.normalized_content)
