"""ports.Collections over a dict of rows, with the marks that SQL keeps."""

from collections.abc import Sequence
from dataclasses import replace

from memory_service.domain.model import IndexState, MemoryStatus
from memory_service.ports import StoredRow, Vector


class ReadyMarks:
    """Rows by memory_id; vectors by memory_id and fingerprint; which collections are ready."""

    def __init__(self, rows: Sequence[StoredRow] = ()) -> None:
        self.rows = {row.memory.memory_id: row for row in rows}
        self.vectors: dict[tuple[str, str], Vector] = {}
        self.marks: set[str] = set()

    async def ready(self, collection: str) -> bool:
        if collection not in self.marks and not self._active():
            self.marks.add(collection)
        return collection in self.marks

    async def mark_ready(self, collection: str) -> None:
        self.marks.add(collection)

    async def mark_lost(self, collection: str) -> None:
        if any(row.memory.index_state is IndexState.SYNCED for row in self._active()):
            self.marks.discard(collection)

    async def batch(self, *, after: str, limit: int, fingerprint: str) -> Sequence[StoredRow]:
        rows = sorted(self._active(), key=lambda row: row.memory.memory_id)
        above = [row for row in rows if row.memory.memory_id > after][:limit]
        return [
            replace(row, vector=self.vectors.get((row.memory.memory_id, fingerprint), row.vector))
            for row in above
        ]

    async def count(self) -> int:
        return len(self._active())

    def _active(self) -> list[StoredRow]:
        return [row for row in self.rows.values() if row.memory.status is MemoryStatus.ACTIVE]
