"""What is known of all active rows of one user, so that a question costs no read of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import getsizeof
from typing import Self

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.centre import Centre, Vector
from memory_service.domain.model import Memory, MemoryStatus
from memory_service.domain.postings import Postings
from memory_service.domain.relevance import (
    SEMANTIC_LIMIT,
    Evidence,
    Question,
    Scored,
    relevance,
)
from memory_service.domain.roster import Allowed, Roster
from memory_service.domain.text import indexed_text
from memory_service.domain.turns import Turns
from memory_service.domain.words import tokens

Change = tuple[Memory, Vector | None]
"""A memory in any status, and its embedding if there is one."""

_ROW_BYTES = 1_700
"""A memory without its texts, and its entries in every column and dictionary; rather too many."""
_POSTING_BYTES = 30
"""A posting and its share of the vocabulary."""


class WorkingSet:
    """Statistics and links over all active rows of one user; for one thread at a time.

    A request's gates decide which rows count, and a row that does not is nobody's neighbour; the
    statistics are over all rows all the same. What an assistant said counts as a neighbour, by its
    words alone, and is never an answer itself.
    """

    def __init__(self, *, revision: int, text: Callable[[Memory], str] = indexed_text) -> None:
        """Begin with no rows; text is what is searched of a memory."""
        self.revision = revision
        self.rows_cut = False
        """The user has more rows than this holds."""
        self.nbytes = 0
        """Estimate of the memory taken."""
        self._text = text
        self._roster = Roster()
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
        self._reserve(self._roster.size + len(last))
        for memory, vector in last.values():
            self._enter(memory, vector)
        self._centre.settle()
        self.revision = revision

    @property
    def stale_mean(self) -> bool:
        """Tell whether μ has to be rebuilt with set_mean.

        So it is when the vectors that came or went since the last time are a tenth of those that
        it was made of, or when fewer than 50 are left of more; below 50, μ is exact at every write
        by itself.
        """
        return self._centre.stale

    def set_mean(self, vectors: Mapping[str, Vector]) -> None:
        """Rebuild μ from the stored embeddings; rows without one here have none from now on."""
        slots = self._roster.slots
        self._centre.rebuild(
            {slots[one]: vector for one, vector in vectors.items() if one in slots}
        )

    def __len__(self) -> int:
        return len(self._roster.slots)

    def memory(self, memory_id: str) -> Memory | None:
        """Give an active row."""
        return self._roster.memory(memory_id)

    def memories(self) -> Iterator[Memory]:
        """Give all active rows, in no promised order."""
        return iter(self._roster.memories())

    def without_vector(self) -> frozenset[str]:
        """Give the rows whose embedding is not known here."""
        slots = self._roster.slots.items()
        return frozenset(one for one, slot in slots if not self._centre.knows(slot))

    def score(self, question: Question, allowed: Allowed = None) -> Scored:
        """Score the allowed rows against a question."""
        mask = self._roster.allowed(allowed)
        recalled = self._roster.recalled(mask)
        slots, cosines = self._cosines(question, recalled)
        parts = relevance(self._evidence(question, mask, slots, cosines))
        total = parts.own + parts.near + parts.peak + parts.name
        fitting = np.flatnonzero(recalled & (total > 0))
        order, scores = self._roster.ordered(fitting, -np.expm1(-total[fitting]))
        found = np.zeros(len(mask), np.bool_)
        found[_nearest(slots, cosines)] = True
        return Scored(
            ids=self._roster.named(order),
            scores=scores,
            c=parts.keywords[order],
            d=parts.vector[order],
            n=int(np.count_nonzero(recalled)),
            max_cosine=float(cosines.max()) if len(cosines) else None,
            found=found[order],
            _parts=parts,
            _slots=order,
        )

    def _evidence(
        self,
        question: Question,
        mask: NDArray[np.bool_],
        slots: NDArray[np.intp],
        cosines: NDArray[np.float64],
    ) -> Evidence:
        """Gather what is known of each slot; rows that may not count know nothing."""
        size = len(mask)
        keywords, coverage = self._postings.evidence(tokens(question.text), size)
        vectors = np.zeros(size)
        if question.vector is not None:
            vectors[slots] = self._centre.closeness(question.vector, slots, cosines)
        return Evidence(
            keywords=keywords * mask,
            vector=vectors,
            coverage=coverage,
            previous=_only(mask, self._turns.previous[:size]),
            following=_only(mask, self._turns.following[:size]),
            asks=self._turns.asks[:size],
            named=self._turns.named(question.text, size),
        )

    def _cosines(
        self, question: Question, recalled: NDArray[np.bool_]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Give the rows that may be recalled and have a cosine: their slots and their cosines."""
        given = question.cosines if question.vector is not None else {}
        slots = self._roster.found(given, len(given))
        cosines = np.fromiter(given.values(), np.float64, len(given))
        usable = recalled[slots] & np.isfinite(cosines)
        return slots[usable], np.minimum(np.maximum(cosines[usable], -1.0), 1.0)

    def _enter(self, memory: Memory, vector: Vector | None) -> None:
        before = self._roster.memory(memory.memory_id)
        active = memory.status is MemoryStatus.ACTIVE
        if before and active and self._text(before) == self._text(memory):
            self._refresh(before, memory, vector)
            return
        if before:
            self._remove(before)
        if active:
            self._add(memory, vector)

    def _refresh(self, before: Memory, memory: Memory, vector: Vector | None) -> None:
        """Replace a memory whose words, and therefore whose vector, are the same."""
        slot = self._roster.replace(memory)
        self._turns.remove(slot, before)
        self._turns.add(slot, memory)
        self.nbytes += _bytes(memory) - _bytes(before)
        if not self._centre.knows(slot):
            self._centre.add(slot, vector)

    def _add(self, memory: Memory, vector: Vector | None) -> None:
        slot = self._roster.add(memory)
        different = self._postings.add(slot, tokens(self._text(memory)))
        self._turns.add(slot, memory)
        self._centre.add(slot, vector)
        self.nbytes += _bytes(memory) + different * _POSTING_BYTES

    def _remove(self, memory: Memory) -> None:
        slot = self._roster.remove(memory.memory_id)
        different = self._postings.remove(slot, tokens(self._text(memory)))
        self._turns.remove(slot, memory)
        self._centre.remove(slot)
        self.nbytes -= _bytes(memory) + different * _POSTING_BYTES

    def _reserve(self, size: int) -> None:
        self._roster.reserve(size)
        self._postings.reserve(size)
        self._turns.reserve(size)
        self._centre.reserve(size)


def _only(mask: NDArray[np.bool_], links: NDArray[np.intp]) -> NDArray[np.intp]:
    """Cut the links to and from rows that may not count."""
    return np.where(mask & mask[links], links, 0)


def _nearest(slots: NDArray[np.intp], cosines: NDArray[np.float64]) -> NDArray[np.intp]:
    """Give the slots of the highest cosines; equal to the last of them counts as among them."""
    if len(slots) <= SEMANTIC_LIMIT:
        return slots
    bound = np.partition(cosines, -SEMANTIC_LIMIT)[-SEMANTIC_LIMIT]
    nearest: NDArray[np.intp] = slots[cosines >= bound]
    return nearest


def _bytes(memory: Memory) -> int:
    return _ROW_BYTES + getsizeof(memory.content) + getsizeof(memory.normalized_content)
