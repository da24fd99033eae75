"""The legacy mode, the rollback switch: the index's own order, else the best rows of SQL."""

import asyncio
from collections.abc import Sequence
from functools import partial

import numpy as np

from memory_service.domain.answer import Brought, Budget, Order, compose
from memory_service.domain.budget import first, within_tokens
from memory_service.domain.gate import allows
from memory_service.domain.merge import merge
from memory_service.domain.rank import LEGACY, rank
from memory_service.domain.recall import Answer, Candidate, Leg, LegState, Query, Ranked, Source
from memory_service.domain.relevance import exact_cosines
from memory_service.ports import Clock, MemoryReader, StoredRow, Vector
from memory_service.retrieve.request import MOST_LOADED, Request, read_request
from memory_service.retrieve.semantic import Embedded, SemanticLeg
from memory_service.retrieve.settings import RetrieveSettings, Until
from memory_service.retrieve.sources import skipped, source
from memory_service.retrieve.started import started

_DEFAULT_LIMIT = 5
_HIGHEST_LIMIT = 20
_MOST_SQL_ROWS = 60

_Found = tuple[Sequence[Candidate], Source]


class LegacyMode:
    """Semantic leg first; if it fails or finds nothing, rows by importance and age."""

    def __init__(
        self,
        reader: MemoryReader,
        semantic: SemanticLeg,
        *,
        clock: Clock,
        settings: RetrieveSettings,
    ) -> None:
        self._reader = reader
        self._semantic = semantic
        self._clock = clock
        self._settings = settings

    async def answer(self, query: Query, until: Until) -> Answer:
        """Give the nearest rows, or else the best ones. Raises StoreUnavailable."""
        if query.text.strip():
            async with started(self._semantic.embed(query.text, until=until.search)) as embedding:
                request = await read_request(self._reader, self._clock, query, until)
                found, semantic = await self._nearest(request, embedding)
        else:
            request = await read_request(self._reader, self._clock, query, until)
            found, [semantic] = (), skipped("blank_query", Leg.SEMANTIC)
        if found:
            return _in_index_order(request, found, semantic)
        return await self._best(request, semantic)

    async def _nearest(self, request: Request, embedding: asyncio.Task[Embedded]) -> _Found:
        embedded = await embedding
        if embedded.vector is None:
            return (), _told(request, LegState.FAILED, (embedded.failure, *embedded.notes))
        cosines, rows = await self._cosines(request, embedded.vector)
        if isinstance(cosines, str):
            return (), _told(request, LegState.FAILED, (cosines, *embedded.notes))
        found = [
            Candidate(
                memory=row.memory,
                legs=frozenset({Leg.SEMANTIC}),
                relevance=max(0.0, cosines[row.memory.memory_id]),
            )
            for row in rows
            if row.memory.memory_id in cosines and allows(request.gate, row.memory)
        ]
        found.sort(key=lambda one: (cosines[one.memory.memory_id], one.memory.memory_id))
        found.reverse()
        return found, _told(request, LegState.OK, embedded.notes, candidates=len(found))

    async def _cosines(
        self, request: Request, vector: Vector
    ) -> tuple[dict[str, float] | str, Sequence[StoredRow]]:
        """Give cosines and their rows; of rows that the index may not know as they are, exact.

        A word instead of cosines says why the index failed.
        """
        user_id, fingerprint = request.gate.scope.user_id, self._semantic.fingerprint
        if self._semantic.exact:
            rows, _ = await self._reader.rows(
                user_id, fingerprint=fingerprint, limit=self._settings.row_limit
            )
            return _exact(rows, vector), rows
        nearest = await self._semantic.nearest(vector, request.gate, until=request.until.search)
        if nearest.failure:
            return nearest.failure, ()
        untold = request.view.untold
        told = {one: cosine for one, cosine in nearest.cosines.items() if one not in untold}
        pending = sorted(request.pending)[-MOST_LOADED:]
        if not told and not pending:
            return {}, ()
        rows = await self._reader.load(user_id, [*pending, *told], fingerprint=fingerprint)
        unsure = [row for row in rows if row.memory.memory_id in untold]
        fresh = await self._semantic.with_vectors(unsure, until=request.until.rows)
        return told | _exact(fresh, vector), rows

    async def _best(self, request: Request, semantic: Source) -> Answer:
        limit = _limit(request.query)
        since = asyncio.get_running_loop().time()
        rows = await self._reader.best(request.wanted, limit=min(3 * limit, _MOST_SQL_ROWS))
        pinned = source(Leg.PINNED, LegState.OK, since=since, candidates=len(rows))
        return _composed(
            request,
            merge(rows, ()),
            [pinned, semantic, *skipped("legacy", Leg.KEYWORD)],
            partial(rank, weights=LEGACY, now=request.gate.now),
        )


def _in_index_order(request: Request, found: Sequence[Candidate], semantic: Source) -> Answer:
    (pinned,) = skipped("legacy", Leg.PINNED)
    sources = [pinned, semantic, *skipped("legacy", Leg.KEYWORD)]
    return _composed(request, found, sources, _as_found)


def _composed(
    request: Request, candidates: Sequence[Candidate], sources: Sequence[Source], order: Order
) -> Answer:
    query = request.query
    budgets: Sequence[Budget] = (
        partial(first, limit=_limit(query)),
        partial(within_tokens, budget=query.token_budget),
    )
    brought = Brought(candidates=candidates, sources=sources)
    return compose(query, request.known, brought, order, budgets)


def _as_found(candidates: Sequence[Candidate]) -> list[Ranked]:
    """Keep the order; the score is the cosine."""
    return [
        Ranked(candidate=one, score=one.relevance, score_parts={"relevance": one.relevance})
        for one in candidates
    ]


def _limit(query: Query) -> int:
    return min(query.limit or _DEFAULT_LIMIT, _HIGHEST_LIMIT)


def _told(
    request: Request, state: LegState, reasons: Sequence[str], *, candidates: int = 0
) -> Source:
    since = request.until.start
    return source(Leg.SEMANTIC, state, since=since, candidates=candidates, reasons=reasons)


def _exact(rows: Sequence[StoredRow], query: Vector) -> dict[str, float]:
    known = [(row.memory.memory_id, row.vector) for row in rows if row.vector is not None]
    if not known:
        return {}
    ids, vectors = zip(*known, strict=True)
    return exact_cosines(ids, np.stack(vectors), query)
