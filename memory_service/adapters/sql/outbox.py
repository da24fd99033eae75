"""What the index still has to be told.

A note is waiting until a relay that holds its lease says that the index knows the memory as it was
when it was claimed. A lease is a token and its end, due_time; a change meanwhile raises the mark.
Locks are taken in the order of a writer's: memories, then notes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, insert, select, update

from database.access import Database
from database.types import UtcTime
from memory_service.adapters.sql.marks import FAILED, TOLD, WAITING
from memory_service.adapters.sql.reader import BY_IDS, load_rows
from memory_service.adapters.sql.rows import batches
from memory_service.adapters.sql.schema import memories, memory_embeddings, memory_index_outbox
from memory_service.adapters.sql.vectors import to_bytes
from memory_service.domain.model import IndexState
from memory_service.ports import IndexNote, NewId, StoredRow, Vector

_ERROR_CHARACTERS = 500

_m = memories.c
_o = memory_index_outbox.c
_e = memory_embeddings.c
_ids: BindParameter[list[str]] = bindparam("memory_ids", expanding=True)
_held = (_o.memory_id == bindparam("its_id"), _o.token == bindparam("its_token"))

DUE = (
    select(_o.user_id, _o.memory_id, _o.attempt)
    .where(_o.state == WAITING, _o.due_time <= bindparam("now", type_=UtcTime))
    .order_by(_o.due_time, _o.memory_id)
    .limit(bindparam("rows"))
    .with_for_update(skip_locked=True)
)
CLAIM = (
    update(memory_index_outbox)
    .where(_o.memory_id.in_(_ids))
    .values(
        token=bindparam("new_token"),
        due_time=bindparam("lease_end", type_=UtcTime),
        claimed_mark=_o.mark,
        attempt=_o.attempt + 1,
    )
)
VERSIONS = select(_m.memory_id, _m.version).where(_m.memory_id.in_(_ids)).with_for_update()
LEASES = (
    select(_o.memory_id, _o.token, _o.due_time, _o.mark, _o.claimed_mark)
    .where(_o.memory_id.in_(_ids))
    .with_for_update()
)
FINISH = (
    update(memory_index_outbox)
    .where(*_held)
    .values(state=bindparam("new_state"), told_time=bindparam("now", type_=UtcTime), token="")
)
GIVE_BACK = (
    update(memory_index_outbox)
    .where(*_held)
    .values(
        token="",
        due_time=bindparam("again", type_=UtcTime),
        last_error=bindparam("error"),
    )
)
INDEXED = (
    update(memories)
    .where(_m.memory_id == bindparam("its_id"))
    .values(
        index_state=bindparam("reached"),
        index_version=bindparam("its_version"),
        index_time=bindparam("now", type_=UtcTime),
    )
)
SETTLE = delete(memory_index_outbox).where(
    _o.state == TOLD, _o.told_time < bindparam("before", type_=UtcTime)
)
DEPTH = select(func.count()).select_from(memory_index_outbox).where(_o.state == WAITING)
EMBEDDED = select(_e.memory_id).where(
    _e.memory_id.in_(_ids), _e.fingerprint == bindparam("fingerprint")
)
KEEP_EMBEDDING = insert(memory_embeddings)


class SqlIndexOutbox:
    """IndexOutbox."""

    def __init__(self, database: Database, *, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def claim(self, *, limit: int, lease: float, now: datetime) -> Sequence[IndexNote]:
        """See IndexOutbox. A claim is an attempt."""
        token = self._new_id()

        def work(connection: Connection) -> Sequence[IndexNote]:
            due = connection.execute(DUE, {"now": now, "rows": limit}).all()
            end = now + timedelta(seconds=lease)
            for batch in batches(row.memory_id for row in due):
                values = {"memory_ids": batch, "new_token": token, "lease_end": end}
                connection.execute(CLAIM, values)
            return [
                IndexNote(
                    user_id=row.user_id,
                    memory_id=row.memory_id,
                    token=token,
                    attempt=row.attempt + 1,
                )
                for row in due
            ]

        return await self._database.write(work)

    async def told(self, notes: Mapping[IndexNote, IndexState], *, now: datetime) -> int:
        """See IndexOutbox."""
        by_id: dict[str, list[tuple[IndexNote, IndexState]]] = {}
        for note, reached in notes.items():
            by_id.setdefault(note.memory_id, []).append((note, reached))
        done = 0
        for batch in batches(by_id):
            some = [pair for memory_id in batch for pair in by_id[memory_id]]
            done += await self._database.write(partial(_told, notes=some, now=now), repeatable=True)
        return done

    async def failed(self, notes: Sequence[IndexNote], *, error: str, retry_at: datetime) -> None:
        """See IndexOutbox; only the first 500 characters of error are kept."""
        values = [
            _lease(note) | {"again": retry_at, "error": error[:_ERROR_CHARACTERS]}
            for note in sorted(notes, key=lambda note: note.memory_id)
        ]
        if values:
            await self._database.write(
                lambda connection: connection.execute(GIVE_BACK, values), repeatable=True
            )

    async def settle(self, *, before: datetime) -> int:
        """See IndexOutbox."""
        return await self._database.write(
            lambda connection: connection.execute(SETTLE, {"before": before}).rowcount,
            repeatable=True,
        )

    async def depth(self) -> int:
        """See IndexOutbox."""
        return await self._database.read(lambda connection: connection.execute(DEPTH).scalar_one())

    async def store_vectors(
        self,
        vectors: Mapping[str, Vector],
        *,
        fingerprint: str,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        """See IndexOutbox."""
        for batch in batches(vectors):
            some = {memory_id: vectors[memory_id] for memory_id in batch}
            await self._database.write(
                partial(_store, vectors=some, fingerprint=fingerprint, versions=versions),
                repeatable=True,
            )

    async def load_any(
        self, notes: Sequence[IndexNote], *, fingerprint: str
    ) -> Sequence[StoredRow]:
        """See IndexOutbox."""
        ids = [note.memory_id for note in notes]
        return await self._database.read(
            lambda connection: load_rows(connection, BY_IDS, ids, fingerprint)
        )


def _lease(note: IndexNote) -> dict[str, Any]:
    return {"its_id": note.memory_id, "its_token": note.token}


def _told(
    connection: Connection, notes: Sequence[tuple[IndexNote, IndexState]], now: datetime
) -> int:
    ids = {"memory_ids": [note.memory_id for note, _ in notes]}
    versions = {row.memory_id: row.version for row in connection.execute(VERSIONS, ids)}
    leases = {row.memory_id: row for row in connection.execute(LEASES, ids)}
    finished, given_back, indexed = [], [], []
    for note, reached in notes:
        lease = leases.get(note.memory_id)
        if lease is None or lease.token != note.token or lease.due_time <= now:
            continue
        if lease.mark != lease.claimed_mark:
            given_back.append(_lease(note) | {"again": now, "error": ""})
            continue
        state = FAILED if reached is IndexState.FAILED else TOLD
        finished.append(_lease(note) | {"new_state": state, "now": now})
        version = versions.get(note.memory_id)
        indexed.append(
            {"its_id": note.memory_id, "reached": reached.value, "its_version": version, "now": now}
        )
    for statement, values in ((INDEXED, indexed), (FINISH, finished), (GIVE_BACK, given_back)):
        if values:
            connection.execute(statement, values)
    return len(finished)


def _store(
    connection: Connection,
    vectors: Mapping[str, Vector],
    fingerprint: str,
    versions: Mapping[str, int] | None,
) -> None:
    ids = {"memory_ids": list(vectors)}
    stored = {row.memory_id: row.version for row in connection.execute(VERSIONS, ids)}
    embedded = connection.scalars(EMBEDDED, ids | {"fingerprint": fingerprint}).all()
    missing = [
        {"memory_id": memory_id, "fingerprint": fingerprint, "vector": to_bytes(vectors[memory_id])}
        for memory_id, version in stored.items()
        if memory_id not in embedded and (versions is None or versions.get(memory_id) == version)
    ]
    if missing:
        connection.execute(KEEP_EMBEDDING, missing)
