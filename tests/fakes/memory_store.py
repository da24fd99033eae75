"""The memory store in memory: MemoryReader, MemoryWriter, IndexOutbox and Collections in one."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from memory_service.domain.change import Change
from memory_service.domain.errors import RequestIdReused, StoreUnavailable
from memory_service.domain.gate import Gate, allows
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryType,
    Operation,
    UserSettings,
    UserState,
)
from memory_service.domain.text import normalize
from memory_service.ports import (
    Clock,
    IndexNote,
    MemoryFilter,
    NewId,
    PinnedQuery,
    RequestKey,
    StoredRow,
    StoreStats,
    Transaction,
    UserView,
    Vector,
)
from tests.fakes.job_queue import FakeJobQueue
from tests.fakes.memory_history import FakeMemoryHistory
from tests.fakes.memory_tables import FakeTransaction, Note, Tables
from tests.fakes.upkeep import FakeUpkeep

T = TypeVar("T")


class FakeMemoryStore:
    """All of the memory service's SQL; down and hang are faults to switch on and off."""

    def __init__(self, *, clock: Clock, new_id: NewId, job_attempts: int = 6) -> None:
        self.tables = Tables()
        self.ready_collections: set[str] = set()
        self.calls: Counter[str] = Counter()
        """How often each port method was called."""
        self.on_change: Callable[[str], object] = lambda _user_id: None
        """Hears whose transaction was committed."""
        self.down = False
        self.hang = False
        self._clock = clock
        self._new_id = new_id
        self.queue = FakeJobQueue(
            lambda: self.tables.jobs, new_id=new_id, attempts=job_attempts, call=self._call
        )
        """JobQueue and JobReader."""
        self.history = FakeMemoryHistory(lambda: self.tables, call=self._call)
        self.upkeep = FakeUpkeep(lambda: self.tables, call=self._call)
        """Due, Forgetting and IndexAudit."""

    # ------------------------------------------------------------ setting the scene

    def seed(
        self,
        user_id: str,
        *rows: Memory | tuple[Memory, Vector],
        fingerprint: str = "",
        settings: UserSettings | None = None,
    ) -> UserState:
        """Create or replace memories, and settings if given, in one transaction."""
        transaction = FakeTransaction(self.tables, user_id, self._clock)
        for row in rows:
            memory, vector = row if isinstance(row, tuple) else (row, None)
            before = transaction.get(memory.memory_id)
            operation = Operation.UPDATE if before else Operation.CREATE
            change = Change(
                operation=operation, actor="user", reason="", before=before, after=memory
            )
            transaction.put(change, vector, fingerprint)
        if settings is not None:
            transaction.set_settings(settings)
        return transaction.state

    def erase(self, user_id: str) -> None:
        """Remove all that is kept about the user, whose revision goes on."""
        state = self.tables.state(user_id)
        gone = {memory.memory_id for memory in self.tables.of(user_id)}
        for memory_id in gone:
            del self.tables.memories[memory_id]
            self.tables.notes.pop(memory_id, None)
        self.tables.vectors = {k: v for k, v in self.tables.vectors.items() if k[0] not in gone}
        history = self.tables.history.items()
        self.tables.history = {entry: kept for entry, kept in history if kept[0] != user_id}
        self.tables.states[user_id] = UserState(
            user_id=user_id,
            revision=state.revision + 1,
            erase_revision=state.revision + 1,
            erase_time=self._clock(),
        )

    async def _call(self, name: str) -> None:
        self.calls[name] += 1
        await asyncio.sleep(0)
        if self.hang:
            await asyncio.Event().wait()
        if self.down:
            raise StoreUnavailable

    # ------------------------------------------------------------ MemoryReader

    async def view(self, wanted: PinnedQuery) -> UserView:
        await self._call("view")
        user_id = wanted.scope.user_id
        open_rows = self._open(wanted)
        constraints = [row for row in open_rows if row.memory_type is MemoryType.CONSTRAINT]
        preferences = [
            row
            for row in open_rows
            if row.memory_type is MemoryType.PREFERENCE and row.confidence >= 0.8
        ]
        untold = {
            note.memory_id: IndexState.FAILED
            if note.reached is IndexState.FAILED
            else IndexState.PENDING
            for note in self.tables.notes.values()
            if note.user_id == user_id
        }
        return UserView(
            state=self.tables.state(user_id),
            pinned=_strongest(constraints) + _strongest(preferences)[: wanted.preference_limit],
            untold=untold,
        )

    async def best(self, wanted: PinnedQuery, *, limit: int) -> Sequence[Memory]:
        await self._call("best")
        return _best(self._open(wanted))[:limit]

    async def rows(
        self, user_id: str, *, fingerprint: str, limit: int
    ) -> tuple[Sequence[StoredRow], int]:
        await self._call("rows")
        active = _best(self.tables.active(user_id))
        return [self.tables.row(memory, fingerprint) for memory in active[:limit]], len(active)

    async def changes(self, user_id: str, *, after: int, fingerprint: str) -> Sequence[StoredRow]:
        await self._call("changes")
        changed = [memory for memory in self.tables.of(user_id) if memory.revision > after]
        changed.sort(key=lambda memory: (memory.revision, memory.memory_id))
        return [self.tables.row(memory, fingerprint) for memory in changed]

    async def load(
        self, user_id: str, memory_ids: Sequence[str], *, fingerprint: str = ""
    ) -> Sequence[StoredRow]:
        await self._call("load")
        wanted = set(memory_ids)
        mine = self.tables.of(user_id)
        return [self.tables.row(row, fingerprint) for row in mine if row.memory_id in wanted]

    async def find_active(self, memory: Memory) -> Memory | None:
        await self._call("find_active")
        return self.tables.find_active(memory)

    async def page(
        self, user_id: str, wanted: MemoryFilter, *, before: str, limit: int
    ) -> Sequence[Memory]:
        await self._call("page")
        found = [
            row
            for row in self.tables.of(user_id)
            if (not before or row.memory_id < before) and _listed(wanted, row)
        ]
        return sorted(found, key=lambda row: row.memory_id, reverse=True)[:limit]

    async def stats(self, user_id: str) -> StoreStats:
        await self._call("stats")
        mine = self.tables.of(user_id)
        jobs = [row.job for row in self.tables.jobs.values() if row.user_id == user_id]
        unfinished = [job.create_time for job in jobs if job.state.is_unfinished]
        return StoreStats(
            revision=self.tables.state(user_id).revision,
            active_by_type=Counter(_counted(row) for row in self.tables.active(user_id)),
            memories_by_status=Counter(row.status for row in mine),
            memories_by_index_state=Counter(row.index_state for row in mine),
            jobs_by_state=Counter(job.state for job in jobs),
            oldest_job=min(unfinished, default=None),
        )

    def _open(self, wanted: PinnedQuery) -> list[Memory]:
        settings = self.tables.state(wanted.scope.user_id).settings
        gate = Gate(wanted.scope, settings, wanted.now, wanted.memory_types)
        return [row for row in self.tables.of(wanted.scope.user_id) if allows(gate, row)]

    # ------------------------------------------------------------ MemorySnapshot

    async def copy(self, user_id: str, sink: Callable[[Iterator[Memory]], T]) -> T:
        await self._call("copy")
        return sink(iter(sorted(self.tables.of(user_id), key=lambda row: row.memory_id)))

    # ------------------------------------------------------------ MemoryWriter

    async def once(
        self, user_id: str, key: RequestKey, work: Callable[[Transaction], bytes]
    ) -> bytes:
        await self._call("once")
        known = self.tables.requests.get((user_id, key.request_id))
        if known is not None:
            if known[0] != key:
                raise RequestIdReused
            return known[1]
        attempt = self.tables.copy()
        answer = work(FakeTransaction(attempt, user_id, self._clock))
        attempt.requests[user_id, key.request_id] = (key, answer, self._clock())
        self.tables = attempt
        self.on_change(user_id)
        return answer

    async def change(self, user_id: str, work: Callable[[Transaction], T]) -> T:
        await self._call("change")
        attempt = self.tables.copy()
        answer = work(FakeTransaction(attempt, user_id, self._clock))
        self.tables = attempt
        self.on_change(user_id)
        return answer

    async def answered(self, user_id: str, request_id: str) -> bool:
        await self._call("answered")
        return (user_id, request_id) in self.tables.requests

    async def touch(self, memory_ids: Mapping[str, datetime]) -> None:
        await self._call("touch")
        for memory_id, time in memory_ids.items():
            row = self.tables.memories.get(memory_id)
            if row and (row.last_access_time is None or row.last_access_time < time):
                self.tables.memories[memory_id] = replace(row, last_access_time=time)

    # ------------------------------------------------------------ IndexOutbox

    async def claim(self, *, limit: int, lease: float, now: datetime) -> Sequence[IndexNote]:
        await self._call("claim")
        waiting = [n for n in self.tables.notes.values() if n.reached is None and n.due <= now]
        waiting.sort(key=lambda note: (note.due, note.memory_id))
        token, until = self._new_id(), now + timedelta(seconds=lease)
        claimed = [
            replace(n, token=token, due=until, claimed_mark=n.mark, attempt=n.attempt + 1)
            for n in waiting[:limit]
        ]
        self.tables.notes |= {note.memory_id: note for note in claimed}
        return [
            IndexNote(
                user_id=note.user_id, memory_id=note.memory_id, token=token, attempt=note.attempt
            )
            for note in claimed
        ]

    async def told(self, notes: Mapping[IndexNote, IndexState], *, now: datetime) -> int:
        await self._call("told")
        done = 0
        for claimed, reached in notes.items():
            note = self._held(claimed)
            if note is None or note.due <= now:
                continue
            if note.mark != note.claimed_mark:
                self.tables.notes[note.memory_id] = replace(note, token="", due=now)
                continue
            self.tables.notes[note.memory_id] = replace(
                note, token="", reached=reached, told_time=now
            )
            row = self.tables.memories.get(note.memory_id)
            if row is not None:
                self.tables.memories[note.memory_id] = replace(row, index_state=reached)
            done += 1
        return done

    async def failed(self, notes: Sequence[IndexNote], *, error: str, retry_at: datetime) -> None:
        await self._call("failed")
        del error
        for claimed in notes:
            note = self._held(claimed)
            if note is not None:
                self.tables.notes[note.memory_id] = replace(note, token="", due=retry_at)

    async def settle(self, *, before: datetime) -> int:
        await self._call("settle")
        settled = [
            note.memory_id
            for note in self.tables.notes.values()
            if note.told_time and note.told_time < before and note.reached is not IndexState.FAILED
        ]
        for memory_id in settled:
            del self.tables.notes[memory_id]
        return len(settled)

    async def depth(self) -> int:
        await self._call("depth")
        return sum(note.reached is None for note in self.tables.notes.values())

    async def store_vectors(
        self,
        vectors: Mapping[str, Vector],
        *,
        fingerprint: str,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        await self._call("store_vectors")
        for memory_id, vector in vectors.items():
            row = self.tables.memories.get(memory_id)
            if row and (versions is None or versions.get(memory_id) == row.version):
                self.tables.vectors.setdefault((memory_id, fingerprint), vector)

    async def load_any(
        self, notes: Sequence[IndexNote], *, fingerprint: str
    ) -> Sequence[StoredRow]:
        await self._call("load_any")
        known = [self.tables.memories.get(note.memory_id) for note in notes]
        return [self.tables.row(row, fingerprint) for row in known if row is not None]

    def _held(self, claimed: IndexNote) -> Note | None:
        note = self.tables.notes.get(claimed.memory_id)
        return note if note is not None and note.token == claimed.token else None

    # ------------------------------------------------------------ Collections

    async def ready(self, collection: str) -> bool:
        await self._call("ready")
        if not self._all_indexed():
            self.ready_collections.add(collection)
        return collection in self.ready_collections

    async def mark_ready(self, collection: str) -> None:
        await self._call("mark_ready")
        self.ready_collections.add(collection)

    async def take_over(self, collection: str) -> None:
        await self._call("take_over")
        self.ready_collections &= {collection}

    async def mark_lost(self, collection: str) -> None:
        await self._call("mark_lost")
        if any(row.index_state is IndexState.SYNCED for row in self._all_indexed()):
            self.ready_collections.discard(collection)

    async def batch(self, *, after: str, limit: int, fingerprint: str) -> Sequence[StoredRow]:
        await self._call("batch")
        later = [row for row in self._all_indexed() if row.memory_id > after]
        later.sort(key=lambda row: row.memory_id)
        return [self.tables.row(row, fingerprint) for row in later[:limit]]

    async def count(self) -> int:
        await self._call("count")
        return len(self._all_indexed())

    def _all_indexed(self) -> list[Memory]:
        return [row for row in self.tables.memories.values() if row.is_indexed]


def _strongest(rows: list[Memory]) -> list[Memory]:
    return sorted(rows, key=lambda r: (r.importance, r.update_time, r.memory_id), reverse=True)


def _best(rows: list[Memory]) -> list[Memory]:
    return sorted(_strongest(rows), key=lambda row: not row.is_explicit)


def _counted(memory: Memory) -> MemoryType:
    known = memory.memory_type
    return MemoryType.FACT if known is MemoryType.UNKNOWN else known


def _listed(wanted: MemoryFilter, memory: Memory) -> bool:
    return (
        (not wanted.memory_types or _counted(memory) in wanted.memory_types)
        and (not wanted.statuses or memory.status in wanted.statuses)
        and (wanted.text in memory.normalized_content or wanted.text in normalize(memory.title))
    )
