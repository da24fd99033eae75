"""One Retrieve on its way: the query, and what SQL said about its user."""

import asyncio
from dataclasses import dataclass

from memory_service.domain.answer import Known
from memory_service.domain.errors import RevisionNotReached
from memory_service.domain.gate import Gate
from memory_service.domain.model import IndexState
from memory_service.domain.recall import Query
from memory_service.ports import Clock, MemoryReader, PinnedQuery, UserView
from memory_service.retrieve.settings import Until

MOST_LOADED = 200
"""So many rows are read by their ids for one request, besides those that the index named."""

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.1
_LAST_WORD = 0.005
"""Before the deadline, so that SQL being behind is not told as SQL being silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A query, once SQL has said whose rows may be recalled."""

    query: Query
    wanted: PinnedQuery
    view: UserView
    until: Until

    @property
    def gate(self) -> Gate:
        """Give what the user and the request allow."""
        wanted = self.wanted
        return Gate(wanted.scope, self.view.state.settings, wanted.now, wanted.memory_types)

    @property
    def known(self) -> Known:
        """Give the snapshot that the answer stands for."""
        view = self.view
        return Known(gate=self.gate, revision=view.state.revision, untold=view.untold)

    @property
    def pending(self) -> frozenset[str]:
        """Name the rows of which the index may know older words, or nothing yet."""
        untold = self.view.untold.items()
        return frozenset(one for one, state in untold if state is IndexState.PENDING)


async def read_request(reader: MemoryReader, clock: Clock, query: Query, until: Until) -> Request:
    """Read state, pinned rows and untold ids, at the query's min_revision or later.

    The pinned leg takes as many preferences as the request's budget for them. Raises
    RevisionNotReached if that revision does not come in time, StoreUnavailable.
    """
    loop = asyncio.get_running_loop()
    pause = _FIRST_PAUSE
    behind = False
    while True:
        wanted = PinnedQuery(
            scope=query.scope,
            now=clock(),
            memory_types=query.memory_types,
            preference_limit=query.budgets.preference,
        )
        try:
            async with asyncio.timeout_at(until.end - _LAST_WORD if behind else None):
                view = await reader.view(wanted)
        except TimeoutError:
            raise RevisionNotReached from None
        if view.state.revision >= query.min_revision:
            return Request(query=query, wanted=wanted, view=view, until=until)
        if loop.time() + pause >= until.end:
            raise RevisionNotReached
        behind = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
