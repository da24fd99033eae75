"""Finding what has had its time, and forgetting what was kept for a while only."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import BindParameter, Connection, Delete, Select, bindparam, delete, select
from sqlalchemy.exc import IntegrityError

from database.access import Database
from database.transient import Again
from database.types import UtcTime
from memory_service.adapters.sql.gates import RECALLED
from memory_service.adapters.sql.marks import WAITING, mark_all
from memory_service.adapters.sql.rows import batches, to_retention
from memory_service.adapters.sql.schema import (
    memories,
    memory_index_outbox,
    memory_jobs,
    memory_requests,
    memory_user_states,
)
from memory_service.domain.ingest import JobState
from memory_service.domain.model import IndexState, MemoryStatus
from memory_service.ports import IndexView, MemoryRef

_m = memories.c
_s = memory_user_states.c
_r = memory_requests.c
_j = memory_jobs.c
_o = memory_index_outbox.c
_rows: BindParameter[int] = bindparam("rows")
_before = bindparam("before", type_=UtcTime)
_later_users = _s.user_id > bindparam("after")
_of_user = _m.user_id == bindparam("user_id")
_there = _m.status.in_([word.value for word in MemoryStatus if word is not MemoryStatus.DELETED])

USERS = select(_s.user_id).where(_later_users).order_by(_s.user_id).limit(_rows)
EXPIRED = (
    select(_m.user_id, _m.memory_id)
    .where(_there, _m.expire_time <= bindparam("now", type_=UtcTime))
    .limit(_rows)
)
RETENTIONS = (
    select(_s.user_id, _s.retention)
    .where(_later_users, _s.retention.is_not(None))
    .order_by(_s.user_id)
    .limit(_rows)
)
UNCHANGED = (
    select(_m.user_id, _m.memory_id)
    .where(_of_user, _there, _m.update_time <= bindparam("since", type_=UtcTime))
    .limit(_rows)
)
DELETED = (
    select(_m.user_id, _m.memory_id)
    .where(_m.delete_time < _before)
    .order_by(_m.delete_time)
    .limit(_rows)
)
ERASURES = (
    select(_s.user_id, _s.erasing)
    .where(_s.erasing > "", _s.erase_time < _before)
    .order_by(_s.user_id)
    .limit(_rows)
)
OLD_REQUESTS = select(_r.user_id, _r.request_id).where(_r.create_time < _before).limit(_rows)
FORGET_REQUEST = delete(memory_requests).where(
    _r.user_id == bindparam("its_user"), _r.request_id == bindparam("its_request")
)
OLD_JOBS = (
    select(_j.job_id).where(_j.state == JobState.DONE.value, _j.create_time < _before).limit(_rows)
)
FORGET_JOB = delete(memory_jobs).where(
    _j.job_id == bindparam("its_id"), _j.state == JobState.DONE.value
)
INDEXED = select(_m.memory_id).where(_of_user, RECALLED, _m.index_state != IndexState.FAILED.value)
UNTOLD = select(_o.memory_id).where(_o.user_id == bindparam("user_id"), _o.state == WAITING)


class SqlDue:
    """Due."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def users(self, *, after: str, limit: int) -> Sequence[str]:
        """See Due."""
        return [row.user_id for row in await self._all(USERS, after=after, rows=limit)]

    async def expired(self, *, now: datetime, limit: int) -> Sequence[MemoryRef]:
        """See Due."""
        return _refs(await self._all(EXPIRED, now=now, rows=limit))

    async def retentions(self, *, after: str, limit: int) -> Sequence[tuple[str, timedelta]]:
        """See Due."""
        found = await self._all(RETENTIONS, after=after, rows=limit)
        return [(row.user_id, to_retention(row.retention)) for row in found]

    async def unchanged(self, user_id: str, *, since: datetime, limit: int) -> Sequence[MemoryRef]:
        """See Due."""
        return _refs(await self._all(UNCHANGED, user_id=user_id, since=since, rows=limit))

    async def deleted(self, *, before: datetime, limit: int) -> Sequence[MemoryRef]:
        """See Due."""
        return _refs(await self._all(DELETED, before=before, rows=limit))

    async def erasures(self, *, before: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """See Due."""
        found = await self._all(ERASURES, before=before, rows=limit)
        return [(row.user_id, row.erasing) for row in found]

    async def _all(self, statement: Select[*tuple[Any, ...]], **values: object) -> Sequence[Any]:
        return await self._database.read(
            lambda connection: connection.execute(statement, values).all()
        )


def _refs(rows: Sequence[Any]) -> list[MemoryRef]:
    return [MemoryRef(row.user_id, row.memory_id) for row in rows]


class SqlForgetting:
    """Forgetting; rows go in the order of their keys, so that two at once do not deadlock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def requests(self, *, before: datetime, limit: int) -> int:
        """See Forgetting."""
        names = ("its_user", "its_request")
        return await self._forget(OLD_REQUESTS, FORGET_REQUEST, names, before, limit)

    async def jobs(self, *, before: datetime, limit: int) -> int:
        """See Forgetting. No user's next job is a done one, so no plan changes."""
        return await self._forget(OLD_JOBS, FORGET_JOB, ("its_id",), before, limit)

    async def _forget(
        self,
        find: Select[*tuple[Any, ...]],
        forget: Delete,
        names: Sequence[str],
        before: datetime,
        limit: int,
    ) -> int:
        def work(connection: Connection) -> int:
            found = sorted(tuple(row) for row in connection.execute(find, values).all())
            keys = [dict(zip(names, key, strict=True)) for key in found]
            return connection.execute(forget, keys).rowcount if keys else 0

        values = {"before": before, "rows": limit}
        return await self._database.write(work, repeatable=True)


class SqlIndexAudit:
    """IndexAudit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def view(self, user_id: str) -> IndexView:
        """See IndexAudit; one snapshot."""

        def work(connection: Connection) -> IndexView:
            waiting = frozenset(connection.scalars(UNTOLD, {"user_id": user_id}))
            active = frozenset(connection.scalars(INDEXED, {"user_id": user_id}))
            return IndexView(settled=active - waiting, waiting=waiting)

        return await self._database.read(work)

    async def remind(self, user_id: str, memory_ids: Sequence[str], *, now: datetime) -> None:
        """See IndexAudit."""
        for batch in batches(memory_ids):
            await self._database.write(
                partial(_remind, user_id=user_id, memory_ids=batch, now=now), repeatable=True
            )


def _remind(connection: Connection, user_id: str, memory_ids: Sequence[str], now: datetime) -> None:
    try:
        mark_all(connection, memory_ids, user_id=user_id, now=now)
    except IntegrityError as error:
        # A writer noted one of them meanwhile.
        raise Again from error
