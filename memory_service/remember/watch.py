"""Following a user's changes as they are made."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from memory_service.domain.change import PastChange
from memory_service.domain.errors import HistoryNotKept
from memory_service.domain.model import UserState
from memory_service.ports import MemoryHistory, News
from memory_service.remember.bells import Bells

READ_AT_ONCE = 100
"""Changes; a revision that made more is read whole all the same."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision and all changes of memories that it made; none: something else changed."""

    number: int
    changes: Sequence[PastChange] = ()


class Watch:
    """Streams revisions. SQL is asked when a bell rings, and every poll seconds.

    Nothing is held between two questions but the number of the last revision.
    """

    def __init__(self, history: MemoryHistory, bells: Bells, *, poll: float) -> None:
        self._history = history
        self._bells = bells
        self._poll = poll
        self._closed = False

    def close(self) -> None:
        """End all streams, and those to come at their start."""
        self._closed = True
        self._bells.ring_all()

    async def revisions(self, user_id: str, after: int | None) -> AsyncGenerator[Revision, None]:
        """Give the revisions after one, in order, until closed; None: after the current one.

        First comes the revision to start after, without changes, as a sign of life. Of revisions
        that changed no memory only the newest is told. Raises HistoryNotKept if that revision was
        never reached, or if the user was erased since; StoreUnavailable.
        """
        with self._bells.listening(user_id) as bell:
            news = await self._news(user_id, after)
            last = news.state.revision if after is None else after
            yield Revision(last)
            while not self._closed:
                for revision in _revisions(news, last):
                    yield revision
                    last = revision.number
                if news.complete:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._poll):
                            await bell.wait()
                bell.clear()
                news = await self._news(user_id, last)

    async def _news(self, user_id: str, after: int | None) -> News:
        if after is None:
            # Whatever is old is left out: this asks for the current revision only.
            return await self._history.news(user_id, after=_NEVER_REACHED, limit=1)
        news = await self._history.news(user_id, after=after, limit=READ_AT_ONCE)
        if not _is_kept(news.state, after):
            raise HistoryNotKept
        return news


_NEVER_REACHED = 2**62


def _is_kept(state: UserState, after: int) -> bool:
    """Tell whether all that happened after a revision is known; 0 asks for whatever is kept."""
    return after == 0 or state.erase_revision <= after <= state.revision


def _revisions(news: News, last: int) -> Iterator[Revision]:
    for number, changes in groupby(news.changes, key=lambda change: change.revision):
        yield Revision(number, tuple(changes))
        last = number
    if news.complete and news.state.revision > last:
        yield Revision(news.state.revision)
