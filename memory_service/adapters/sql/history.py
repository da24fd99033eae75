"""Reading history."""

from collections.abc import Sequence

from sqlalchemy import Connection, Row, bindparam, select

from database.access import Database
from memory_service.adapters.sql.documents import to_decision, to_memory
from memory_service.adapters.sql.reader import read_state
from memory_service.adapters.sql.schema import memory_history
from memory_service.domain.change import PastChange
from memory_service.domain.model import Memory, Operation
from memory_service.ports import News

_h = memory_history.c
_of_user = _h.user_id == bindparam("user_id")
_of_memory = _h.memory_id == bindparam("memory_id")

PAGE = (
    select(memory_history)
    .where(_of_user)
    .order_by(_h.history_id.desc())
    .limit(bindparam("entries"))
)
VERSION = (
    select(_h.after)
    .where(_of_user, _of_memory, _h.version == bindparam("version"))
    .order_by(_h.history_id.desc())
    .limit(1)
)
NEWS = (
    select(memory_history)
    .where(_of_user, _h.revision > bindparam("revision"))
    .order_by(_h.revision, _h.history_id)
    .limit(bindparam("entries"))
)
OF_REVISION = (
    select(memory_history)
    .where(_of_user, _h.revision == bindparam("revision"))
    .order_by(_h.history_id)
)


class SqlMemoryHistory:
    """MemoryHistory; every call is one snapshot."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, user_id: str, memory_id: str, *, before: int, limit: int
    ) -> Sequence[PastChange]:
        """See MemoryHistory."""
        statement = PAGE.where(_of_memory) if memory_id else PAGE
        if before:
            statement = statement.where(_h.history_id < before)
        values = {"user_id": user_id, "entries": limit}
        if memory_id:
            values["memory_id"] = memory_id
        return await self._database.read(
            lambda connection: _changes(connection.execute(statement, values).all())
        )

    async def version(self, user_id: str, memory_id: str, version: int) -> Memory | None:
        """See MemoryHistory."""
        values = {"user_id": user_id, "memory_id": memory_id, "version": version}
        kept = await self._database.read(lambda connection: connection.scalar(VERSION, values))
        return None if kept is None else to_memory(kept)

    async def news(self, user_id: str, *, after: int, limit: int) -> News:
        """See MemoryHistory."""
        return await self._database.read(
            lambda connection: _news(connection, user_id, after, limit)
        )


def _news(connection: Connection, user_id: str, after: int, limit: int) -> News:
    state = read_state(connection, user_id)
    values = {"user_id": user_id, "revision": after, "entries": limit + 1}
    rows = connection.execute(NEWS, values).all()
    if len(rows) <= limit:
        return News(state=state, changes=_changes(rows), complete=True)
    whole = [row for row in rows if row.revision != rows[-1].revision]
    if not whole:
        # One revision made more changes than that.
        its = {"user_id": user_id, "revision": rows[-1].revision}
        whole = list(connection.execute(OF_REVISION, its).all())
    complete = whole[-1].revision == state.revision
    return News(state=state, changes=_changes(whole), complete=complete)


def _changes(rows: Sequence[Row[*tuple[object, ...]]]) -> list[PastChange]:
    return [
        PastChange(
            entry_id=row.history_id,
            memory_id=row.memory_id,
            version=row.version,
            revision=row.revision,
            operation=Operation(row.operation),
            actor=row.actor,
            reason=row.reason,
            before=None if row.before is None else to_memory(row.before),
            after=None if row.after is None else to_memory(row.after),
            decision=None if row.decision is None else to_decision(row.decision),
            create_time=row.create_time,
        )
        for row in rows
    ]
