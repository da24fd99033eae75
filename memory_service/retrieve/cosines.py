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
            reasons = (embedded.failure, *embedded.notes)
            return Evidence(held=held, state=LegState.FAILED, reasons=reasons)
        if nearest.failure:
            whole = await self._working_sets.at(
                request.view.state, request.view.untold, whole=True, until=request.until.rows
            )
            return await self._exact(request, whole, embedded, nearest.failure, spare=held)
        if self._semantic.exact:
            return await self._exact(request, held, embedded)
        cosines = {one: c for one, c in nearest.cosines.items() if one not in request.view.untold}
        if held is not None:
            await self._complete(request, held, request.pending | (held.bare & cosines.keys()))
            cosines |= held.cosines(embedded.vector, request.pending)
        return Evidence(held=held, vector=embedded.vector, cosines=cosines, reasons=embedded.notes)

    async def _exact(
        self,
        request: Request,
        held: Held | None,
        embedded: Embedded,
        failure: str = "",
        spare: Held | None = None,
    ) -> Evidence:
        """Take exact cosines from the embeddings in SQL, because the index failed or is not used.

        Without those embeddings in time spare serves the keywords.
        """
        if held is None or embedded.vector is None:
            reasons = (failure or TIMEOUT, *embedded.notes)
            return Evidence(held=spare, state=LegState.FAILED, reasons=reasons)
        bare = held.bare - request.view.untold.keys()
        await self._complete(request, held, request.pending | bare)
        problems = [failure] if failure else []
        problems += [ROWS_CUT] if held.working.rows_cut else []
        return Evidence(
            held=held,
            vector=embedded.vector,
            cosines=held.cosines(embedded.vector),
            state=LegState.DEGRADED if problems else LegState.OK,
            reasons=(*problems, *embedded.notes),
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
