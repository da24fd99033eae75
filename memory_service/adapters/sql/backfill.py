"""Which collections are complete, and what a backfill has to write."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from database.access import Database
from database.transient import Again
from memory_service.adapters.sql.gates import RECALLED
from memory_service.adapters.sql.reader import WITH_VECTOR
from memory_service.adapters.sql.rows import to_stored
from memory_service.adapters.sql.schema import memories, memory_index_collections
from memory_service.domain.model import IndexState
from memory_service.ports import Clock, StoredRow

_m = memories.c
_c = memory_index_collections.c

READY = select(_c.ready_time).where(_c.collection == bindparam("collection"))
MARK_READY = insert(memory_index_collections)
ANY = select(_m.memory_id).where(RECALLED).limit(1)
ANY_SYNCED = ANY.where(_m.index_state == IndexState.SYNCED.value)
OTHERS = delete(memory_index_collections).where(_c.collection != bindparam("kept"))
MARK_LOST = delete(memory_index_collections).where(_c.collection == bindparam("lost"))
COUNT = select(func.count()).select_from(memories).where(RECALLED)
BATCH = (
    WITH_VECTOR.where(RECALLED, _m.memory_id > bindparam("after"))
    .order_by(_m.memory_id)
    .limit(bindparam("rows"))
)


class SqlCollections:
    """Collections."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def ready(self, collection: str) -> bool:
        """See Collections. Once it is ready it stays so: later changes are the outbox's."""
        values = {"collection": collection}

        def known(connection: Connection) -> bool | None:
            if connection.execute(READY, values).first() is not None:
                return True
            return None if connection.execute(ANY).first() is None else False

        found = await self._database.read(known)
        if found is None:
            await self.mark_ready(collection)
        return found is not False

    async def mark_ready(self, collection: str) -> None:
        """See Collections."""
        values = {"collection": collection, "ready_time": self._clock()}

        def work(connection: Connection) -> None:
            if connection.execute(READY, {"collection": collection}).first() is None:
                try:
                    connection.execute(MARK_READY, values)
                except IntegrityError as error:
                    raise Again from error

        await self._database.write(work, repeatable=True)

    async def take_over(self, collection: str) -> None:
        """See Collections."""
        await self._database.write(
            lambda connection: connection.execute(OTHERS, {"kept": collection}), repeatable=True
        )

    async def mark_lost(self, collection: str) -> None:
        """See Collections."""

        def work(connection: Connection) -> None:
            if connection.execute(ANY_SYNCED).first() is not None:
                connection.execute(MARK_LOST, {"lost": collection})

        await self._database.write(work, repeatable=True)

    async def batch(self, *, after: str, limit: int, fingerprint: str) -> Sequence[StoredRow]:
        """See Collections."""
        values = {"after": after, "rows": limit, "fingerprint": fingerprint}
        return await self._database.read(
            lambda connection: to_stored(connection.execute(BATCH, values).all())
        )

    async def count(self) -> int:
        """See Collections."""
        return await self._database.read(lambda connection: connection.execute(COUNT).scalar_one())
