"""MemoryHistory over the tables in memory."""

from collections.abc import Awaitable, Callable, Sequence

from memory_service.domain.change import PastChange
from memory_service.domain.model import Memory
from memory_service.ports import News
from tests.fakes.memory_tables import Tables


class FakeMemoryHistory:
    """What the changes in the tables are to a reader."""

    def __init__(
        self, tables: Callable[[], Tables], *, call: Callable[[str], Awaitable[None]]
    ) -> None:
        self._tables = tables
        self._call = call

    async def page(
        self, user_id: str, memory_id: str, *, before: int, limit: int
    ) -> Sequence[PastChange]:
        await self._call("history_page")
        found = [
            change
            for change in self._of(user_id)
            if memory_id in {"", change.memory_id} and (not before or change.entry_id < before)
        ]
        return found[::-1][:limit]

    async def version(self, user_id: str, memory_id: str, version: int) -> Memory | None:
        await self._call("history_version")
        for change in reversed(self._of(user_id)):
            if (change.memory_id, change.version) == (memory_id, version):
                return change.after
        return None

    async def news(self, user_id: str, *, after: int, limit: int) -> News:
        await self._call("history_news")
        state = self._tables().state(user_id)
        later = [change for change in self._of(user_id) if change.revision > after]
        revisions = sorted({change.revision for change in later})
        given: list[PastChange] = []
        for revision in revisions:
            its = [change for change in later if change.revision == revision]
            if given and len(given) + len(its) > limit:
                break
            given += its
        return News(state=state, changes=given, complete=len(given) == len(later))

    def _of(self, user_id: str) -> list[PastChange]:
        return [change for owner, change in self._tables().history.values() if owner == user_id]
