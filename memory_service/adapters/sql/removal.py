"""Removing a user's rows for good, under the user's lock: memories, then notes, then the rest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    Delete,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from database.types import LongBytes, UtcTime
from memory_service.adapters.sql.job_rows import plan
from memory_service.adapters.sql.marks import mark_all
from memory_service.adapters.sql.rows import batches, from_settings
from memory_service.adapters.sql.schema import (
    memories,
    memory_embeddings,
    memory_history,
    memory_jobs,
    memory_requests,
    memory_user_states,
)
from memory_service.domain.erasure import Store
from memory_service.domain.model import Operation, UserSettings, UserState
from memory_service.ports import Counts

_m = memories.c
_e = memory_embeddings.c
_h = memory_history.c
_s = memory_user_states.c
_r = memory_requests.c
_ids: BindParameter[list[str]] = bindparam("memory_ids", expanding=True)

SET_STATE = update(memory_user_states).where(_s.user_id == bindparam("owner"))
SOME = (
    select(_m.memory_id)
    .where(_m.user_id == bindparam("user_id"))
    .order_by(_m.memory_id)
    .limit(bindparam("rows"))
)
PURGEABLE = select(_m.memory_id, _m.version).where(
    _m.user_id == bindparam("user_id"),
    _m.memory_id.in_(_ids),
    _m.delete_time < bindparam("before", type_=UtcTime),
)
FORGET_MEMORIES = delete(memories).where(_m.memory_id.in_(_ids))
FORGET_EMBEDDINGS = delete(memory_embeddings).where(_e.memory_id.in_(_ids))
FORGET_HISTORY = delete(memory_history).where(
    _h.user_id == bindparam("user_id"), _h.memory_id.in_(_ids)
)
EMPTY_HISTORY = (
    update(memory_history)
    .where(_h.user_id == bindparam("owner"), _h.memory_id.in_(_ids))
    .values(before=None, after=None, decision=None)
)
EMPTY_ANSWERS = (
    update(memory_requests)
    .where(
        _r.user_id == bindparam("owner"),
        func.instr(_r.answer, bindparam("its_id", type_=LongBytes)) > 0,
    )
    .values(answer=b"")
)
NOTE_ERASURE = insert(memory_history)
OLD_HISTORY = delete(memory_history).where(
    _h.user_id == bindparam("user_id"), _h.revision < bindparam("before")
)
ALL_JOBS = delete(memory_jobs).where(memory_jobs.c.user_id == bindparam("user_id"))
ALL_REQUESTS = delete(memory_requests).where(_r.user_id == bindparam("user_id"))


class SqlRemoval:
    """Removal."""

    def __init__(self, connection: Connection, state: UserState, now: datetime) -> None:
        self._connection = connection
        self._state = state
        self._now = now
        self._user: dict[str, Any] = {"user_id": state.user_id}

    def begin(self, request_id: str) -> Counts:
        """See Removal."""
        self._set_state(
            **from_settings(UserSettings(memory_enabled=False)),
            erase_time=self._now,
            erase_revision=self._state.revision,
            erasing=request_id,
        )
        jobs = self._delete(ALL_JOBS)
        plan(self._connection, self._state.user_id)
        return {
            Store.JOBS: jobs,
            Store.REQUESTS: self._delete(ALL_REQUESTS),
            # A row that this transaction made held nothing.
            Store.STATES: int(self._state.revision > 1),
        }

    def some(self, limit: int) -> Counts:
        """See Removal."""
        ids = self._connection.scalars(SOME, self._user | {"rows": limit}).all()
        counts = dict.fromkeys((Store.MEMORIES, Store.EMBEDDINGS, Store.HISTORY, Store.OUTBOX), 0)
        for batch in batches(ids):
            counts[Store.MEMORIES] += self._delete(FORGET_MEMORIES, batch)
            counts[Store.OUTBOX] += mark_all(
                self._connection, batch, user_id=self._state.user_id, now=self._now
            )
            counts[Store.EMBEDDINGS] += self._delete(FORGET_EMBEDDINGS, batch)
            counts[Store.HISTORY] += self._delete(FORGET_HISTORY, batch)
        return counts

    def finish(self) -> Counts:
        """See Removal."""
        state = self._state
        self._set_state(**from_settings(UserSettings()), erase_revision=state.revision, erasing="")
        old = self._user | {"before": state.erase_revision}
        return {Store.HISTORY: self._connection.execute(OLD_HISTORY, old).rowcount}

    def purge(self, memory_ids: Sequence[str], *, before: datetime, actor: str, reason: str) -> int:
        """See Removal."""
        purged = 0
        for batch in batches(memory_ids):
            values = self._user | {"memory_ids": batch, "before": before}
            versions = {
                row.memory_id: row.version for row in self._connection.execute(PURGEABLE, values)
            }
            if versions:
                self._purge(versions, actor, reason)
                purged += len(versions)
        if purged:
            self._set_state(purge_revision=self._state.revision)
        return purged

    def _purge(self, versions: dict[str, int], actor: str, reason: str) -> None:
        ids, owner = sorted(versions), {"owner": self._state.user_id}
        self._delete(FORGET_MEMORIES, ids)
        mark_all(self._connection, ids, user_id=self._state.user_id, now=self._now)
        self._delete(FORGET_EMBEDDINGS, ids)
        self._connection.execute(EMPTY_HISTORY, owner | {"memory_ids": ids})
        self._connection.execute(EMPTY_ANSWERS, [owner | {"its_id": one.encode()} for one in ids])
        self._connection.execute(
            NOTE_ERASURE,
            [
                self._user
                | {
                    "memory_id": memory_id,
                    "version": versions[memory_id] + 1,
                    "revision": self._state.revision,
                    "operation": Operation.ERASE.value,
                    "actor": actor,
                    "reason": reason,
                    "before": None,
                    "after": None,
                    "decision": None,
                    "create_time": self._now,
                }
                for memory_id in ids
            ],
        )

    def _set_state(self, **values: object) -> None:
        self._connection.execute(SET_STATE, {"owner": self._state.user_id, **values})

    def _delete(self, statement: Delete, ids: Sequence[str] | None = None) -> int:
        values = self._user if ids is None else self._user | {"memory_ids": ids}
        return self._connection.execute(statement, values).rowcount
