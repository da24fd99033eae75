"""Removing all that is kept about a user, for good."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable

from memory_service.domain.erasure import Receipt, Store
from memory_service.domain.errors import IndexUnavailable
from memory_service.ports import (
    Counts,
    MemoryReader,
    MemoryWriter,
    RequestKey,
    Transaction,
    VectorIndex,
)

CHUNK = 500
"""Memories removed in a transaction; others write in between."""


class Erase:
    """Erases users in steps, each a transaction that happens once.

    The first step closes the user's memory, the last one opens it anew, so nothing is found or
    learnt in between; if a process dies there, the same request goes on where it ended.
    """

    def __init__(
        self,
        reader: MemoryReader,
        writer: MemoryWriter,
        index: VectorIndex | None,
        *,
        elsewhere: bool = False,
        index_timeout: float = 5.0,
    ) -> None:
        """Index None: there is none, or (elsewhere) only another process can tell it."""
        self._reader = reader
        self._writer = writer
        self._index = index
        self._elsewhere = elsewhere
        self._index_timeout = index_timeout

    async def erase(
        self, user_id: str, key: RequestKey, encode: Callable[[Receipt], bytes]
    ) -> bytes:
        """Remove everything; encode makes the answer to keep.

        The index is asked last and its relay is to tell it again, so the receipt says what is still
        out of reach, and does not wait for it.
        """
        counts = await self._step(
            user_id, key.part("begin"), lambda tx: tx.removal.begin(key.request_id)
        )
        number, removed = 0, CHUNK
        while removed == CHUNK:
            step = await self._step(user_id, key.part(number), lambda tx: tx.removal.some(CHUNK))
            counts.update(step)
            number, removed = number + 1, step[Store.MEMORIES]
        pending = await self._forget_vectors(user_id, counts)

        def finish(tx: Transaction) -> bytes:
            erased = {store: counts[store] for store in Store}
            for store, rows in tx.removal.finish().items():
                erased[store] += rows
            erase_time = tx.state.erase_time
            assert erase_time is not None  # noqa: S101 — for the type checker: begin set it
            return encode(Receipt(erase_time=erase_time, erased=erased, pending=pending))

        return await self._writer.once(user_id, key, finish)

    async def _step(
        self, user_id: str, key: RequestKey, work: Callable[[Transaction], Counts]
    ) -> Counter[Store]:
        kept = await self._writer.once(user_id, key, lambda tx: json.dumps(work(tx)).encode())
        return Counter({Store(name): count for name, count in json.loads(kept).items()})

    async def _forget_vectors(self, user_id: str, counts: Counter[Store]) -> tuple[Store, ...]:
        """Take out what the index holds and SQL does not; gives the stores out of reach."""
        if self._index is None:
            return (Store.INDEX,) if self._elsewhere else ()
        try:
            async with asyncio.timeout(self._index_timeout):
                while gone := await self._strangers(self._index, user_id):
                    await self._index.remove(gone)
                    counts[Store.INDEX] += len(gone)
        except (IndexUnavailable, TimeoutError):
            return (Store.INDEX,)
        return ()

    async def _strangers(self, index: VectorIndex, user_id: str) -> list[str]:
        """Give ids of the user in the index that are no memories of theirs."""
        held = await index.ids(user_id)
        known = await self._reader.load(user_id, sorted(held))
        return sorted(held.difference(row.memory.memory_id for row in known))
