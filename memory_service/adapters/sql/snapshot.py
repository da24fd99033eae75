"""All of a user's memories as of one moment, in bounded memory."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy import BindParameter, Connection, bindparam, select

from database.access import Database
from memory_service.adapters.sql.rows import MEMORY_COLUMNS, to_memory
from memory_service.adapters.sql.schema import memories
from memory_service.domain.model import Memory

_T = TypeVar("_T")
_ROWS = 200

_m = memories.c
_rows: BindParameter[int] = bindparam("rows")

LATER = (
    select(*MEMORY_COLUMNS)
    .where(_m.user_id == bindparam("user_id"), _m.memory_id > bindparam("after"))
    .order_by(_m.memory_id)
    .limit(_rows)
)


class SqlMemorySnapshot:
    """MemorySnapshot."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def copy(self, user_id: str, sink: Callable[[Iterator[Memory]], _T]) -> _T:
        """See MemorySnapshot."""
        return await self._database.read(lambda connection: sink(_each(connection, user_id)))


def _each(connection: Connection, user_id: str) -> Iterator[Memory]:
    """Read in pages: a driver would hold the rows of one large answer all at once."""
    after = ""
    while True:
        values = {"user_id": user_id, "after": after, "rows": _ROWS}
        rows = connection.execute(LATER, values).all()
        yield from map(to_memory, rows)
        if len(rows) < _ROWS:
            return
        after = rows[-1].memory_id
