"""The searched part of hybrid: semantic and keyword leg over one user's rows."""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from memory_service.domain.answer import ROWS_CUT, Brought
from memory_service.domain.cut import Ruler, cut
from memory_service.domain.gate import allows
from memory_service.domain.merge import searched
from memory_service.domain.recall import Candidate, Cut, Leg, LegState, Source
from memory_service.domain.relevance import Question, exact_cosines
from memory_service.domain.working_set import WorkingSet
from memory_service.ports import MemoryReader, StoredRow
from memory_service.retrieve.cosines import Cosines, Evidence
from memory_service.retrieve.request import MOST_LOADED, Request
from memory_service.retrieve.semantic import TIMEOUT, Embedded, Nearest, SemanticLeg
from memory_service.retrieve.sources import source
from memory_service.retrieve.started import started
from memory_service.retrieve.working_sets import WorkingSets


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a request is answered from: evidence, rows to score, and the ids that the index named.

    The last working set stands for rows that the user's own does not hold.
    """

    evidence: Evidence
    working_sets: Sequence[WorkingSet]
    named: frozenset[str]


class Search:
    """Finds rows by meaning and by words."""

    def __init__(
        self,
        reader: MemoryReader,
        semantic: SemanticLeg,
        working_sets: WorkingSets,
    ) -> None:
        self._reader = reader
        self._semantic = semantic
        self._working_sets = working_sets
        self._cosines = Cosines(reader, semantic, working_sets)

    async def find(self, request: Request, embedding: asyncio.Task[Embedded]) -> Brought:
        """Give searched candidates, and what both legs did. Raises StoreUnavailable."""
        gathered = await self.gather(request, embedding)
        evidence = gathered.evidence
        ruler = await self._ruler(request, evidence)
        found = [
            candidate
            for working in gathered.working_sets
            for candidate in _judged(request, evidence, working, ruler)
        ]
        return Brought(
            candidates=found,
            sources=_sources(request, evidence, found),
            refused=_refused(request, gathered.named, found, gathered.working_sets),
        )

    async def gather(self, request: Request, embedding: asyncio.Task[Embedded]) -> Gathered:
        """Ask both legs, and give what to score with. Raises StoreUnavailable."""
        async with started(self._ask(request, embedding)) as asking:
            held = await self._working_sets.at(
                request.view.state,
                request.view.untold,
                whole=self._semantic.exact,
                until=request.until.rows,
            )
            embedded, nearest = await asking
        evidence = await self._cosines.gather(request, held, embedded, nearest)
        lone = await self._lone(request, evidence, nearest)
        working_sets = [evidence.held.working] if evidence.held else []
        working_sets += [_alone(lone, request)] if lone else []
        return Gathered(
            _with_lone(evidence, request, lone), working_sets, frozenset(nearest.cosines)
        )

    async def _ask(
        self, request: Request, embedding: asyncio.Task[Embedded]
    ) -> tuple[Embedded, Nearest]:
        embedded = await embedding
        if embedded.vector is None or self._semantic.exact:
            return embedded, Nearest()
        nearest = self._semantic.nearest(embedded.vector, request.gate, until=request.until.search)
        return embedded, await nearest

    async def _lone(
        self, request: Request, evidence: Evidence, nearest: Nearest
    ) -> Sequence[StoredRow]:
        """Read allowed rows that the working set does not hold, if it holds not all of them.

        Those that the index named, and those of which it may know older words or nothing yet.
        """
        held = evidence.held
        if held is not None and not held.working.rows_cut:
            return ()
        named = [*nearest.cosines, *sorted(request.pending, reverse=True)[:MOST_LOADED]]
        wanted = [one for one in dict.fromkeys(named) if not held or not held.working.memory(one)]
        if not wanted:
            return ()
        loaded = await self._reader.load(
            request.gate.scope.user_id, wanted, fingerprint=self._semantic.fingerprint
        )
        return [row for row in loaded if allows(request.gate, row.memory)]

    async def _ruler(self, request: Request, evidence: Evidence) -> Ruler | None:
        if request.query.cut is Cut.OFF or evidence.vector is None:
            return None
        return await self._semantic.ruler(until=request.until.search)


def _alone(lone: Sequence[StoredRow], request: Request) -> WorkingSet:
    """Let rows that the working set does not hold stand for themselves, statistics and all."""
    pairs = [(row.memory, row.vector) for row in lone]
    return WorkingSet.build(pairs, revision=request.view.state.revision, total=len(pairs))


def _refused(
    request: Request,
    named: AbstractSet[str],
    found: Sequence[Candidate],
    working_sets: Sequence[WorkingSet],
) -> int:
    """Count the rows that the index named and that are not to be had: deleted, another's, gated."""
    unsure = named - {candidate.memory.memory_id for candidate in found}
    rows = [working.memory(one) for one in unsure for working in working_sets]
    return len(unsure) - sum(row is not None and allows(request.gate, row) for row in rows)


def _with_lone(evidence: Evidence, request: Request, lone: Sequence[StoredRow]) -> Evidence:
    """Add the exact cosines of lone rows of which the index may know older words."""
    pairs = [(row.memory.memory_id, row.vector) for row in lone if row.vector is not None]
    untold = [pair for pair in pairs if pair[0] in request.pending]
    if evidence.vector is None or not untold:
        return evidence
    ids, vectors = zip(*untold, strict=True)
    exact = exact_cosines(ids, np.stack(vectors), evidence.vector)
    return replace(evidence, cosines={**evidence.cosines, **exact})


def _judged(
    request: Request, evidence: Evidence, working: WorkingSet, ruler: Ruler | None
) -> list[Candidate]:
    """Score rows, and mark those that the cut holds back."""
    query = request.query
    question = Question(query.text, evidence.vector, evidence.cosines)
    scored = working.score(question, request.gate)
    result = cut(scored, query.text, evidence.vector, ruler, query.cut)
    return searched(
        scored,
        working.memory,
        kept=result.kept,
        cut_parts=result.parts if query.explain else None,
    )


def _sources(
    request: Request, evidence: Evidence, found: Sequence[Candidate]
) -> tuple[Source, Source]:
    """Tell what both legs did. The index stands in for words beyond a user's first 20,000 rows."""
    since = request.until.start
    state, reason = LegState.OK, ""
    if evidence.held is None:
        state, reason = LegState.DEGRADED, TIMEOUT
    elif evidence.held.working.rows_cut:
        state, reason = LegState.DEGRADED, ROWS_CUT
    return (
        source(
            Leg.SEMANTIC,
            evidence.state,
            since=since,
            candidates=sum(Leg.SEMANTIC in one.legs for one in found),
            reasons=evidence.reasons,
        ),
        source(
            Leg.KEYWORD,
            state,
            since=since,
            candidates=sum(Leg.KEYWORD in one.legs for one in found),
            reasons=(reason,) if reason else (),
        ),
    )
