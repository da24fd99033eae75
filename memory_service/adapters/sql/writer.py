"""Writing memories: each request once."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, insert, or_, select, update

from database.access import Database
from database.types import UtcTime
from memory_service.adapters.sql.rows import batches
from memory_service.adapters.sql.schema import memories, memory_requests
from memory_service.adapters.sql.transaction import SqlTransaction, raise_revision
from memory_service.domain.errors import RequestIdReused
from memory_service.ports import Clock, RequestKey, Transaction

_T = TypeVar("_T")

_r = memory_requests.c
_m = memories.c
_recalled = bindparam("recalled", type_=UtcTime)

KNOWN_REQUEST = select(_r.rpc, _r.digest, _r.answer).where(
    _r.user_id == bindparam("user_id"), _r.request_id == bindparam("request_id")
)
KEEP_REQUEST = insert(memory_requests)
TOUCH = (
    update(memories)
    .where(
        _m.memory_id == bindparam("its_id"),
        or_(_m.last_access_time.is_(None), _m.last_access_time < _recalled),
    )
    .values(last_access_time=_recalled)
)


class SqlMemoryWriter:
    """MemoryWriter. on_written hears whose transaction was committed."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        on_written: Callable[[str], object] = lambda _user_id: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._on_written = on_written

    async def once(
        self, user_id: str, key: RequestKey, work: Callable[[Transaction], bytes]
    ) -> bytes:
        """See MemoryWriter.

        A connection lost while committing is no question either: run again, the request is either
        known or not.
        """
        answer = await self._database.write(
            lambda connection: self._once(connection, user_id, key, work), repeatable=True
        )
        self._on_written(user_id)
        return answer

    async def change(self, user_id: str, work: Callable[[Transaction], _T]) -> _T:
        """See MemoryWriter."""

        def changed(connection: Connection) -> _T:
            raise_revision(connection, user_id)
            return work(SqlTransaction(connection, user_id, self._clock))

        given = await self._database.write(changed, repeatable=True)
        self._on_written(user_id)
        return given

    async def answered(self, user_id: str, request_id: str) -> bool:
        """See MemoryWriter."""
        values = {"user_id": user_id, "request_id": request_id}
        known = await self._database.read(
            lambda connection: connection.execute(KNOWN_REQUEST, values).first()
        )
        return known is not None

    async def touch(self, memory_ids: Mapping[str, datetime]) -> None:
        """See MemoryWriter; some hundred in a transaction, always in the order of their ids."""
        for batch in batches(memory_ids):
            values = [{"its_id": each, "recalled": memory_ids[each]} for each in batch]
            await self._database.write(partial(_touch, values=values), repeatable=True)

    def _once(
        self,
        connection: Connection,
        user_id: str,
        key: RequestKey,
        work: Callable[[Transaction], bytes],
    ) -> bytes:
        raise_revision(connection, user_id)
        request = {"user_id": user_id, "request_id": key.request_id}
        known = connection.execute(KNOWN_REQUEST, request).first()
        if known is not None:
            # Nothing happens this time: the revision too goes back.
            connection.rollback()
            if (known.rpc, known.digest) != (key.rpc, key.digest):
                raise RequestIdReused
            return bytes(known.answer)
        answer = work(SqlTransaction(connection, user_id, self._clock))
        connection.execute(
            KEEP_REQUEST,
            request
            | {
                "rpc": key.rpc,
                "digest": key.digest,
                "answer": answer,
                "create_time": self._clock(),
            },
        )
        return answer


def _touch(connection: Connection, values: list[dict[str, Any]]) -> None:
    connection.execute(TOUCH, values)
