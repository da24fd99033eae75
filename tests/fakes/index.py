"""A vector index in memory: VectorIndex, exact, with faults to switch on and off."""

import asyncio
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from memory_service.domain.errors import IndexUnavailable
from memory_service.domain.model import Memory, MemoryType
from memory_service.ports import IndexFilter, IndexHit, StoredRow, Vector


class FakeVectorIndex:
    """down: the cause of a refusal (unavailable, timeout, breaker_open, reindexing); "": it works.

    hang: never answers. Rows are kept as they were told, whatever SQL says since.
    """

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Memory, Vector]] = {}
        self.calls: Counter[str] = Counter()
        self.down = ""
        self.hang = False
        self.closed = False

    async def search(
        self, vector: Vector, wanted: IndexFilter, *, limit: int
    ) -> Sequence[IndexHit]:
        _check(wanted.user_id, wanted.assistant_id or "none", wanted.run_id or "none")
        await self._call("search")
        if not np.isfinite(vector).all() or not vector.any():
            return []
        query = vector / np.linalg.norm(vector)
        hits = [
            IndexHit(memory_id, float(np.clip(query @ (row / np.linalg.norm(row)), -1.0, 1.0)))
            for memory_id, (memory, row) in self.rows.items()
            if _passes(wanted, memory)
        ]
        return sorted(hits, key=lambda hit: (hit.cosine, hit.memory_id), reverse=True)[:limit]

    async def upsert(self, rows: Sequence[StoredRow]) -> None:
        await self._call("upsert")
        for row in rows:
            if row.vector is None or not np.isfinite(row.vector).all() or not row.vector.any():
                message = f"{row.memory.memory_id} has no vector that can be indexed"
                raise ValueError(message)
        for row in rows:
            assert row.vector is not None
            self.rows[row.memory.memory_id] = (row.memory, row.vector)

    async def remove(self, memory_ids: Sequence[str]) -> None:
        _check(*memory_ids)
        await self._call("remove")
        for memory_id in memory_ids:
            self.rows.pop(memory_id, None)

    async def ids(self, user_id: str) -> frozenset[str]:
        _check(user_id)
        await self._call("ids")
        return frozenset(one for one, (row, _) in self.rows.items() if row.user_id == user_id)

    async def close(self) -> None:
        self.closed = True

    async def _call(self, name: str) -> None:
        self.calls[name] += 1
        await asyncio.sleep(0)
        if self.hang:
            await asyncio.Event().wait()
        if self.down:
            raise IndexUnavailable(self.down)


def _check(*ids: str) -> None:
    """Raise ValueError for an empty id (user_id must never mean everybody) and control ones."""
    for one in ids:
        if not one or any(unicodedata.category(character) in {"Cc", "Cs"} for character in one):
            message = f"user_id and other ids are not empty and hold no control characters: {one!r}"
            raise ValueError(message)


def _passes(wanted: IndexFilter, memory: Memory) -> bool:
    known = memory.memory_type
    counted = MemoryType.FACT if known is MemoryType.UNKNOWN else known
    return (
        memory.user_id == wanted.user_id
        and (memory.expire_time is None or memory.expire_time > wanted.now)
        and (not wanted.assistant_id or memory.assistant_id in ("", wanted.assistant_id))
        and (not wanted.run_id or memory.run_id in ("", wanted.run_id))
        and (not wanted.explicit_only or memory.is_explicit)
        and memory.sensitivity_level <= wanted.max_sensitivity
        and (not wanted.memory_types or counted in wanted.memory_types)
    )
