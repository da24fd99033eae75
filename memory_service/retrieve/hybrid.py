"""The hybrid mode: pinned, semantic and keyword leg together (SPEC_MEMORY 5)."""

from memory_service.domain.answer import Brought, hybrid
from memory_service.domain.cut import is_small_talk
from memory_service.domain.merge import merge
from memory_service.domain.rank import Weights
from memory_service.domain.recall import Answer, Leg, LegState, Query, Source
from memory_service.ports import Clock, MemoryReader
from memory_service.retrieve.request import Request, read_request
from memory_service.retrieve.search import Search
from memory_service.retrieve.semantic import SemanticLeg
from memory_service.retrieve.settings import Until
from memory_service.retrieve.sources import skipped, source
from memory_service.retrieve.started import started

_SEARCHED = (Leg.SEMANTIC, Leg.KEYWORD)


class HybridMode:
    """Answers a query from all legs."""

    def __init__(
        self,
        reader: MemoryReader,
        semantic: SemanticLeg,
        search: Search,
        *,
        clock: Clock,
        weights: Weights,
    ) -> None:
        self._reader = reader
        self._semantic = semantic
        self._search = search
        self._clock = clock
        self._weights = weights

    async def answer(self, query: Query, until: Until) -> Answer:
        """Embed and read at the same time, then search; the rest is domain.answer."""
        reason = _needs_no_search(query.text)
        if reason:
            request, pinned = await self._read(query, until)
            return self._composed(request, pinned, _not_searched(reason))
        async with started(self._semantic.embed(query.text, until=until.search)) as embedding:
            request, pinned = await self._read(query, until)
            if request.gate.settings.memory_enabled:
                found = await self._search.find(request, embedding)
            else:
                found = _not_searched("settings")
        return self._composed(request, pinned, found)

    async def _read(self, query: Query, until: Until) -> tuple[Request, Source]:
        request = await read_request(self._reader, self._clock, query, until)
        rows = len(request.view.pinned)
        return request, source(Leg.PINNED, LegState.OK, since=until.start, candidates=rows)

    def _composed(self, request: Request, pinned: Source, found: Brought) -> Answer:
        brought = Brought(
            candidates=merge(request.view.pinned, found.candidates),
            sources=(pinned, *found.sources),
            refused=found.refused,
        )
        return hybrid(request.query, request.known, brought, self._weights)


def _needs_no_search(text: str) -> str:
    if not text.strip():
        return "blank_query"
    return "small_talk" if is_small_talk(text) else ""


def _not_searched(reason: str) -> Brought:
    return Brought(candidates=(), sources=skipped(reason, *_SEARCHED))
