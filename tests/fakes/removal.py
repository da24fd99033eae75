"""Removal over the tables in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memory_service.domain.change import Change
from memory_service.domain.erasure import Store
from memory_service.domain.model import Memory, MemoryStatus, Operation, UserSettings
from memory_service.ports import Counts

if TYPE_CHECKING:
    from tests.fakes.memory_tables import Tables


class FakeRemoval:
    """Removal of one user's rows."""

    def __init__(self, tables: "Tables", user_id: str, now: datetime) -> None:
        self._tables = tables
        self._user_id = user_id
        self._now = now

    def begin(self, request_id: str) -> Counts:
        tables, state = self._tables, self._tables.state(self._user_id)
        tables.states[self._user_id] = replace(
            state,
            settings=UserSettings(memory_enabled=False),
            erase_time=self._now,
            erase_revision=state.revision,
            erasing=request_id,
        )
        requests = [key for key in tables.requests if key[0] == self._user_id]
        for key in requests:
            del tables.requests[key]
        jobs = [one for one, row in tables.jobs.items() if row.user_id == self._user_id]
        for job_id in jobs:
            del tables.jobs[job_id]
        return {
            Store.JOBS: len(jobs),
            Store.REQUESTS: len(requests),
            Store.STATES: int(state.revision > 1),
        }

    def some(self, limit: int) -> Counts:
        ids = sorted(row.memory_id for row in self._tables.of(self._user_id))[:limit]
        return {
            Store.MEMORIES: len(ids),
            Store.EMBEDDINGS: sum(map(self._take_out, ids)),
            Store.HISTORY: self._forget(self._changes(*ids)),
            Store.OUTBOX: sum(map(self._mark, ids)),
        }

    def finish(self) -> Counts:
        state = self._tables.state(self._user_id)
        self._tables.states[self._user_id] = replace(
            state, settings=UserSettings(), erase_revision=state.revision, erasing=""
        )
        old = [
            entry
            for entry, (owner, change) in self._tables.history.items()
            if owner == self._user_id and change.revision < state.erase_revision
        ]
        return {Store.HISTORY: self._forget(old)}

    def purge(self, memory_ids: Sequence[str], *, before: datetime, actor: str, reason: str) -> int:
        gone = [
            row
            for row in self._tables.of(self._user_id)
            if row.memory_id in memory_ids
            and row.status is MemoryStatus.DELETED
            and row.update_time < before
        ]
        for row in gone:
            self._take_out(row.memory_id)
            self._mark(row.memory_id)
            self._empty(row, actor, reason)
        if gone:
            state = self._tables.state(self._user_id)
            self._tables.states[self._user_id] = replace(state, purge_revision=state.revision)
        return len(gone)

    def _mark(self, memory_id: str) -> bool:
        return self._tables.mark(memory_id, self._user_id, self._now)

    def _take_out(self, memory_id: str) -> int:
        del self._tables.memories[memory_id]
        vectors = [key for key in self._tables.vectors if key[0] == memory_id]
        for key in vectors:
            del self._tables.vectors[key]
        return len(vectors)

    def _changes(self, *memory_ids: str) -> list[int]:
        return [
            entry
            for entry, (owner, change) in self._tables.history.items()
            if owner == self._user_id and change.memory_id in memory_ids
        ]

    def _forget(self, entries: list[int]) -> int:
        for entry in entries:
            del self._tables.history[entry]
        return len(entries)

    def _empty(self, row: Memory, actor: str, reason: str) -> None:
        tables = self._tables
        revision = tables.state(self._user_id).revision
        last = replace(row, version=row.version + 1, revision=revision)
        erased = Change(
            operation=Operation.ERASE, actor=actor, reason=reason, before=None, after=last
        )
        tables.note(erased, self._now)
        for entry in self._changes(row.memory_id):
            wordless = replace(tables.history[entry][1], before=None, after=None, decision=None)
            tables.history[entry] = (self._user_id, wordless)
        word = row.memory_id.encode()
        for key, (request, answer, time) in tables.requests.items():
            if key[0] == self._user_id and word in answer:
                tables.requests[key] = (request, b"", time)
