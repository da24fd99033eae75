"""Where the cosines of one request come from: the index, stored embeddings, or both."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memory_service.domain.answer import ROWS_CUT
from memory_service.domain.recall import LegState
from memory_service.ports import MemoryReader, Vector
from memory_service.retrieve.held import Held
from memory_service.retrieve.request import MOST_LOADED, Request
from memory_service.retrieve.semantic import TIMEOUT, Embedded, Nearest, SemanticLeg
from memory_service.retrieve.working_sets import WorkingSets


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What to score with, and how the semantic leg did; held None: it did not come in time."""

    held: Held | None
    vector: Vector | None = None
    cosines: Mapping[str, float] = field(default_factory=dict)
    state: LegState = LegState.OK
    reasons: tuple[str, ...] = ()


class Cosines:
    """Chooses the source of the cosines by what answered."""

    def __init__(
        self,
        reader: MemoryReader,
        semantic: SemanticLeg,
        working_sets: WorkingSets,
    ) -> None:
        self._reader = reader
        self._semantic = semantic
        self._working_sets = working_sets

    async def gather(
        self, request: Request, held: Held | None, embedded: Embedded, nearest: Nearest
    ) -> Evidence:
        """Give the evidence. Raises StoreUnavailable."""
        if embedded.vector is None:
            return Evidence(held=held, state=LegState.FAILED, reasons=(embedded.failure,))
        if nearest.failure:
            return await self._fallback(request, held, embedded.vector, nearest.failure)
        if self._semantic.exact:
            return await self._exact(request, held, embedded.vector, (), embedded.notes)
        cosines = {one: c for one, c in nearest.cosines.items() if one not in request.view.untold}
        if held is not None:
            await self._complete(request, held, request.pending | (held.bare & cosines.keys()))
            cosines |= held.cosines(embedded.vector, request.pending)
        return Evidence(held=held, vector=embedded.vector, cosines=cosines, reasons=embedded.notes)

    async def _fallback(
        self, request: Request, held: Held | None, vector: Vector, failure: str
    ) -> Evidence:
        """Take exact cosines from the embeddings in SQL: the index did not answer."""
        whole = await self._working_sets.at(
            request.view.state, request.view.untold, whole=True, until=request.until.rows
        )
        if whole is None:
            return Evidence(held=held, vector=vector, state=LegState.FAILED, reasons=(failure,))
        return await self._exact(request, whole, vector, (failure,), ())

    async def _exact(
        self,
        request: Request,
        held: Held | None,
        vector: Vector,
        failures: tuple[str, ...],
        notes: tuple[str, ...],
    ) -> Evidence:
        if held is None:
            return Evidence(held=None, vector=vector, state=LegState.FAILED, reasons=(TIMEOUT,))
        await self._complete(
            request, held, request.pending | (held.bare - request.view.untold.keys())
        )
        cut = (ROWS_CUT,) if held.working.rows_cut else ()
        return Evidence(
            held=held,
            vector=vector,
            cosines=held.cosines(vector),
            state=LegState.DEGRADED if failures or cut else LegState.OK,
            reasons=(*failures, *cut, *notes),
        )

    async def _complete(self, request: Request, held: Held, wanted: Iterable[str]) -> None:
        """Learn embeddings that came after their rows; make those that SQL does not have yet."""
        missing = [one for one in wanted if one not in held.vectors and held.working.memory(one)]
        if not missing:
            return
        loaded = await self._reader.load(
            request.gate.scope.user_id,
            sorted(missing)[-MOST_LOADED:],
            fingerprint=self._semantic.fingerprint,
        )
        rows = await self._semantic.with_vectors(loaded, until=request.until.rows)
        held.learn((row.memory, row.vector) for row in rows)
