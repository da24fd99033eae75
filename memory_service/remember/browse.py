"""Reading what is stored, whatever Retrieve would hide."""

from collections.abc import Sequence

from memory_service.domain.errors import MemoryNotFound
from memory_service.domain.model import Memory, Scope, UserSettings
from memory_service.ports import Clock, MemoryFilter, MemoryReader, PinnedQuery, StoreStats
from memory_service.remember.steps import NO_SUCH_MEMORY


class Browse:
    """Gives what is kept about one user: memories in any status, settings, counts."""

    def __init__(self, reader: MemoryReader, *, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock

    async def get(self, user_id: str, memory_id: str) -> Memory:
        """Give a memory. Raises MemoryNotFound."""
        for memory in await self.get_many(user_id, [memory_id]):
            return memory
        raise MemoryNotFound(NO_SUCH_MEMORY)

    async def get_many(self, user_id: str, memory_ids: Sequence[str]) -> Sequence[Memory]:
        """Give memories in the order of the ids, without unknown ones."""
        rows = await self._reader.load(user_id, list(dict.fromkeys(memory_ids)))
        by_id = {row.memory.memory_id: row.memory for row in rows}
        return [by_id[memory_id] for memory_id in memory_ids if memory_id in by_id]

    async def page(
        self, user_id: str, wanted: MemoryFilter, *, before: str, size: int
    ) -> Sequence[Memory]:
        """Give a page by memory_id desc, and one memory more unless it is the last page."""
        return await self._reader.page(user_id, wanted, before=before, limit=size + 1)

    async def settings(self, user_id: str) -> UserSettings:
        """Give the settings in force."""
        wanted = PinnedQuery(scope=Scope(user_id=user_id), now=self._clock(), preference_limit=0)
        view = await self._reader.view(wanted)
        return view.state.settings

    async def stats(self, user_id: str) -> StoreStats:
        """Count what is stored."""
        return await self._reader.stats(user_id)
