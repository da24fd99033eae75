"""Noting what was recalled: in the background, many at a time, best effort."""

import asyncio
from collections.abc import Iterable
from datetime import datetime

from memory_service.domain.errors import StoreUnavailable
from memory_service.ports import MemoryWriter

MOST_WAITING = 10_000
"""So many memories are kept for writing; while SQL is slow, later ones are not noted."""


class Touches:
    """Collects recalled memories for interval seconds, then writes last_access_time.

    While SQL does not answer they are lost: recalling must not wait for it.
    """

    def __init__(self, writer: MemoryWriter, *, interval: float) -> None:
        self._writer = writer
        self._interval = interval
        self._waiting: dict[str, datetime] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, memory_ids: Iterable[str], now: datetime) -> None:
        """Remember that memories were recalled."""
        if len(self._waiting) < MOST_WAITING:
            self._waiting.update(dict.fromkeys(memory_ids, now))
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._later())

    async def flush(self) -> None:
        """Write what was collected."""
        recalled, self._waiting = self._waiting, {}
        if recalled:
            try:
                await self._writer.touch(recalled)
            except StoreUnavailable:
                return

    async def close(self) -> None:
        """Write what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.flush()

    async def _later(self) -> None:
        await asyncio.sleep(self._interval)
        await self.flush()
