"""Answering a query: which mode, how long, and what is noted afterwards."""

import asyncio
from concurrent.futures import Executor

from memory_service.domain.errors import StoreUnavailable
from memory_service.domain.recall import Answer, Mode, Query
from memory_service.ports import Clock, Embedder, MemoryReader, MemoryWriter, VectorIndex
from memory_service.retrieve.alike import AlikeRows
from memory_service.retrieve.hybrid import HybridMode
from memory_service.retrieve.legacy import LegacyMode
from memory_service.retrieve.search import Search
from memory_service.retrieve.semantic import SemanticLeg
from memory_service.retrieve.settings import RetrieveSettings, until
from memory_service.retrieve.touch import Touches
from memory_service.retrieve.working_sets import WorkingSets


class Retriever:
    """Finds what to recall.

    index None: cosines come from the embeddings in SQL. executor: where large working sets are
    built, None: the event loop's own threads.
    """

    def __init__(  # noqa: PLR0913 — what a Retrieve is made of, constructed in one place
        self,
        *,
        reader: MemoryReader,
        writer: MemoryWriter,
        index: VectorIndex | None,
        embedder: Embedder,
        clock: Clock,
        settings: RetrieveSettings | None = None,
        executor: Executor | None = None,
    ) -> None:
        chosen = settings or RetrieveSettings()
        self._settings = chosen
        self._clock = clock
        self._semantic = SemanticLeg(embedder, index, chosen)
        self._working_sets = WorkingSets(
            reader, fingerprint=embedder.fingerprint, settings=chosen, executor=executor
        )
        search = Search(reader, self._semantic, self._working_sets)
        self._hybrid = HybridMode(
            reader, self._semantic, search, clock=clock, weights=chosen.weights
        )
        self.alike = AlikeRows(
            reader, self._semantic, search, clock=clock, patience=chosen.alike_patience
        )
        """Rows that are like a statement, found with the same legs and working sets."""
        self._legacy = LegacyMode(reader, self._semantic, clock=clock, settings=chosen)
        self._touches = Touches(writer, interval=chosen.touch_interval)

    async def retrieve(self, query: Query, *, deadline: float) -> Answer:
        """Answer within deadline seconds.

        Raises StoreUnavailable if SQL does not answer, RevisionNotReached if the query's
        min_revision does not come in time. Embedder and index failing is told in the answer.
        """
        start = asyncio.get_running_loop().time()
        times = until(self._settings, start=start, deadline=deadline)
        mode = self._legacy if query.mode is Mode.LEGACY else self._hybrid
        try:
            async with asyncio.timeout_at(times.end):
                answer = await mode.answer(query, times)
        except TimeoutError as error:
            raise StoreUnavailable from error
        self._touches.note(
            (item.candidate.memory.memory_id for item in answer.items), self._clock()
        )
        return answer

    async def close(self) -> None:
        """Write what was noted, and stop what is being built."""
        await self._touches.close()
        await self._working_sets.close()
        await self._semantic.close()
