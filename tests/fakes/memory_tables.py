"""The tables of the memory store in memory, and a transaction over them."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_service.domain.change import Change, PastChange
from memory_service.domain.errors import EqualMemoryExists, MemoryIdTaken, MemoryNotFound
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    UserSettings,
    UserState,
)
from memory_service.domain.text import active_key, indexed_text
from memory_service.ports import Clock, RequestKey, StoredRow, Vector
from tests.fakes.job_rows import FakeJobRows, JobRow
from tests.fakes.removal import FakeRemoval


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the index has to be told about a memory; reached is set once it was told."""

    user_id: str
    memory_id: str
    mark: int
    claimed_mark: int = 0
    token: str = ""
    due: datetime
    attempt: int = 0
    reached: IndexState | None = None
    told_time: datetime | None = None


@dataclass(slots=True)
class Tables:
    """Rows are frozen, so a copy of the dictionaries is a snapshot."""

    memories: dict[str, Memory] = field(default_factory=dict)
    states: dict[str, UserState] = field(default_factory=dict)
    vectors: dict[tuple[str, str], Vector] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    requests: dict[tuple[str, str], tuple[RequestKey, bytes, datetime]] = field(
        default_factory=dict
    )
    history: dict[int, tuple[str, PastChange]] = field(default_factory=dict)
    """By entry_id: whose change, and the change."""
    entries: int = 0
    jobs: dict[str, JobRow] = field(default_factory=dict)

    def copy(self) -> "Tables":
        return Tables(
            dict(self.memories),
            dict(self.states),
            dict(self.vectors),
            dict(self.notes),
            dict(self.requests),
            dict(self.history),
            self.entries,
            dict(self.jobs),
        )

    def mark(self, memory_id: str, user_id: str, now: datetime) -> bool:
        """Note that the index has to be told; tells whether there was a note.

        Under a lease the note is not due anew: the relay that holds it gives it back.
        """
        known = self.notes.get(memory_id)
        if known is None:
            self.notes[memory_id] = Note(user_id=user_id, memory_id=memory_id, mark=1, due=now)
            return False
        self.notes[memory_id] = replace(
            known,
            mark=known.mark + 1,
            due=known.due if known.token else now,
            attempt=0,
            reached=None,
            told_time=None,
        )
        return True

    def note(self, change: Change, now: datetime) -> None:
        """Keep a change in history."""
        self.entries += 1
        after = change.after
        past = PastChange(
            entry_id=self.entries,
            memory_id=after.memory_id,
            version=after.version,
            revision=after.revision,
            operation=change.operation,
            actor=change.actor,
            reason=change.reason,
            before=change.before,
            after=after,
            decision=change.decision,
            create_time=now,
        )
        self.history[self.entries] = (after.user_id, past)

    def state(self, user_id: str) -> UserState:
        return self.states.get(user_id, UserState(user_id=user_id))

    def row(self, memory: Memory, fingerprint: str) -> StoredRow:
        return StoredRow(memory, self.vectors.get((memory.memory_id, fingerprint)))

    def of(self, user_id: str) -> list[Memory]:
        return [row for row in self.memories.values() if row.user_id == user_id]

    def active(self, user_id: str) -> list[Memory]:
        return [row for row in self.of(user_id) if row.status is MemoryStatus.ACTIVE]

    def find_active(self, memory: Memory) -> Memory | None:
        wanted = _unique_key(replace(memory, status=MemoryStatus.ACTIVE))
        for row in self.active(memory.user_id):
            if _unique_key(row) == wanted:
                return row
        return None


class FakeTransaction:
    """Transaction; opening it raised the revision in the tables given."""

    def __init__(self, tables: Tables, user_id: str, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock
        state = tables.state(user_id)
        tables.states[user_id] = replace(state, revision=state.revision + 1)
        self._user_id = user_id

    @property
    def state(self) -> UserState:
        return self._tables.state(self._user_id)

    @property
    def jobs(self) -> FakeJobRows:
        return FakeJobRows(self._tables.jobs, self._user_id, self.state.revision)

    @property
    def removal(self) -> FakeRemoval:
        return FakeRemoval(self._tables, self._user_id, self._clock())

    def get(self, memory_id: str) -> Memory | None:
        found = self._tables.memories.get(memory_id)
        return found if found is not None and found.user_id == self._user_id else None

    def find_active(self, memory: Memory) -> Memory | None:
        return self._tables.find_active(replace(memory, user_id=self._user_id))

    def changes(self, after: int) -> list[Memory]:
        changed = [row for row in self._tables.of(self._user_id) if row.revision > after]
        return sorted(changed, key=lambda row: (row.revision, row.memory_id))

    def put(self, change: Change, vector: Vector | None = None, fingerprint: str = "") -> Memory:
        index_state = IndexState.PENDING if change.concerns_index else IndexState.REMOVED
        after = replace(change.after, revision=self.state.revision, index_state=index_state)
        self._check(change, after)
        tables = self._tables
        if change.before is not None and indexed_text(change.before) != indexed_text(after):
            for key in [key for key in tables.vectors if key[0] == after.memory_id]:
                del tables.vectors[key]
        if vector is not None:
            tables.vectors[after.memory_id, fingerprint] = vector
        tables.memories[after.memory_id] = after
        tables.note(replace(change, after=after), self._clock())
        if change.concerns_index:
            tables.mark(after.memory_id, after.user_id, self._clock())
        return after

    def set_settings(self, settings: UserSettings) -> UserState:
        self._tables.states[self._user_id] = replace(self.state, settings=settings)
        return self.state

    def _check(self, change: Change, after: Memory) -> None:
        if after.user_id != self._user_id:
            raise MemoryNotFound
        if change.before is not None and self.get(after.memory_id) is None:
            raise MemoryNotFound
        if after.status is MemoryStatus.ACTIVE:
            equal = self.find_active(after)
            if equal is not None and (change.before is None or equal.memory_id != after.memory_id):
                raise EqualMemoryExists
        if change.before is None and after.memory_id in self._tables.memories:
            raise MemoryIdTaken


def _unique_key(memory: Memory) -> tuple[str, str, str, str | None]:
    return (memory.assistant_id, memory.run_id, memory.memory_type.value, active_key(memory))
