"""MemoryHistory over the tables in memory."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

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
        for change in self._of(user_id):
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
        return list(self._changes(user_id))

    def _changes(self, user_id: str) -> Iterator[PastChange]:
        for place, change in enumerate(self._tables().history, 1):
            if change.after.user_id == user_id:
                yield PastChange(
                    entry_id=place,
                    memory_id=change.after.memory_id,
                    version=change.after.version,
                    revision=change.after.revision,
                    operation=change.operation,
                    actor=change.actor,
                    reason=change.reason,
                    before=change.before,
                    after=change.after,
                    decision=change.decision,
                    create_time=change.after.update_time,
                )
