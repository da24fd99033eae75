"""Rows that are like a statement, whatever the user's settings hide from a Retrieve."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory_service.domain.model import Memory, MemoryType, Scope, UserSettings
from memory_service.domain.recall import Query
from memory_service.domain.relevance import Question, exact_cosines
from memory_service.ports import Clock, MemoryReader, PinnedQuery, StoredRow, Vector
from memory_service.retrieve.request import Request
from memory_service.retrieve.search import Gathered, Search
from memory_service.retrieve.semantic import SemanticLeg
from memory_service.retrieve.settings import Until
from memory_service.retrieve.started import started

MOST_LOOKED_AT = 100
"""So many rows by relevance, and so many by cosine, are read anew and compared exactly."""

_EVERYTHING = UserSettings(sensitive_memory_enabled=True)


@dataclass(frozen=True, slots=True)
class Alike:
    """A row as it is now: relevance to the statement, and their raw cosine if both have vectors."""

    memory: Memory
    relevance: float
    cosine: float | None


class AlikeRows:
    """Finds active rows of one user by meaning and by words, with the legs of a Retrieve.

    patience: most seconds for embedder and index, and again for SQL: nobody waits for an answer.
    """

    def __init__(
        self,
        reader: MemoryReader,
        semantic: SemanticLeg,
        search: Search,
        *,
        clock: Clock,
        patience: float,
    ) -> None:
        self._reader = reader
        self._semantic = semantic
        self._search = search
        self._clock = clock
        self._patience = patience

    async def find(
        self, scope: Scope, text: str, wanted: Callable[[Memory], bool]
    ) -> Sequence[Alike]:
        """Give wanted rows by relevance desc, cosine desc; those alike in nothing are left out.

        Without the embedder, and of rows that have no embedding yet, words tell alone. Rows that
        have expired are not given. Raises StoreUnavailable.
        """
        request = await self._request(scope, text)
        async with started(self._semantic.embed(text, until=request.until.search)) as embedding:
            gathered = await self._search.gather(request, embedding)
        relevance = _relevance(gathered, text, wanted)
        best = sorted(relevance, key=relevance.__getitem__, reverse=True)[:MOST_LOOKED_AT]
        nearest = _nearest(gathered, wanted)[:MOST_LOOKED_AT]
        rows = await self._reader.load(
            scope.user_id,
            list(dict.fromkeys([*best, *nearest])),
            fingerprint=self._semantic.fingerprint,
        )
        cosines = _cosines(rows, gathered.evidence.vector)
        found = [
            Alike(
                row.memory,
                relevance.get(row.memory.memory_id, 0.0),
                cosines.get(row.memory.memory_id),
            )
            for row in rows
            if wanted(row.memory)
        ]
        return sorted(found, key=_order, reverse=True)

    async def _request(self, scope: Scope, text: str) -> Request:
        """Ask for all that the user has, as if nothing were switched off."""
        start = asyncio.get_running_loop().time()
        # Facts are never pinned: this reads no rows.
        asked = PinnedQuery(
            scope=scope, now=self._clock(), memory_types=frozenset({MemoryType.FACT})
        )
        view = await self._reader.view(asked)
        end = start + 2 * self._patience
        return Request(
            query=Query(scope=scope, text=text),
            wanted=replace(asked, memory_types=frozenset()),
            view=replace(view, state=replace(view.state, settings=_EVERYTHING)),
            until=Until(start, start + self._patience, end, end),
        )


def _relevance(gathered: Gathered, text: str, wanted: Callable[[Memory], bool]) -> dict[str, float]:
    """Give the relevance of the rows that fit to some degree."""
    question = Question(text, gathered.evidence.vector, gathered.evidence.cosines)
    return {
        row.memory_id: row.score
        for working in gathered.working_sets
        for row in working.score(question, wanted).rows(MOST_LOOKED_AT)
    }


def _nearest(gathered: Gathered, wanted: Callable[[Memory], bool]) -> list[str]:
    """Give wanted rows by their cosine: of few rows, the mean takes away what they share."""
    cosines = gathered.evidence.cosines
    return [
        one
        for one in sorted(cosines, key=cosines.__getitem__, reverse=True)
        if any((row := held.memory(one)) and wanted(row) for held in gathered.working_sets)
    ]


def _cosines(rows: Sequence[StoredRow], vector: Vector | None) -> dict[str, float]:
    known = [(row.memory.memory_id, row.vector) for row in rows if row.vector is not None]
    if vector is None or not known:
        return {}
    return exact_cosines([one for one, _ in known], np.stack([row for _, row in known]), vector)


def _order(one: Alike) -> tuple[float, float, str]:
    cosine = -1.0 if one.cosine is None else one.cosine
    return one.relevance, cosine, one.memory.memory_id
