"""Reading memories."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import (
    Connection,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
)

from database.access import Database
from database.types import Key, UtcTime
from memory_service.adapters.sql.gates import OPEN, gate_values, of_types, open_types
from memory_service.adapters.sql.marks import FAILED
from memory_service.adapters.sql.rows import (
    MEMORY_COLUMNS,
    STATE_COLUMNS,
    batches,
    memory_type,
    to_memory,
    to_state,
    to_stored,
)
from memory_service.adapters.sql.schema import (
    memories,
    memory_embeddings,
    memory_index_outbox,
    memory_jobs,
    memory_user_states,
)
from memory_service.domain.ingest import JobState
from memory_service.domain.model import IndexState, Memory, MemoryStatus, MemoryType, UserState
from memory_service.domain.text import active_key
from memory_service.ports import MemoryFilter, PinnedQuery, StoredRow, StoreStats, UserView

_m = memories.c
_j = memory_jobs.c
_of_user = _m.user_id == bindparam("user_id")
_active = _m.status == MemoryStatus.ACTIVE.value
_strongest = (_m.importance.desc(), _m.update_time.desc(), _m.memory_id.desc())

STATE = select(*STATE_COLUMNS).where(memory_user_states.c.user_id == bindparam("user_id"))

STATE_AND_UNTOLD = (
    select(*STATE_COLUMNS, memory_index_outbox.c.memory_id, memory_index_outbox.c.state)
    .select_from(
        memory_user_states.outerjoin(
            memory_index_outbox, memory_index_outbox.c.user_id == memory_user_states.c.user_id
        )
    )
    .where(memory_user_states.c.user_id == bindparam("user_id"))
)
"""A row for each note of the index, at least one for a known user: one question less."""


CONSTRAINTS = (
    select(*MEMORY_COLUMNS)
    .where(OPEN, _m.memory_type == MemoryType.CONSTRAINT.value)
    .order_by(*_strongest)
)
PREFERENCES = (
    select(*MEMORY_COLUMNS)
    .where(OPEN, _m.memory_type == MemoryType.PREFERENCE.value, _m.confidence >= 0.8)  # noqa: PLR2004 — the Plan
    .order_by(*_strongest)
    .limit(bindparam("preference_limit"))
)
# Two statements: MariaDB would write the parts of a union to temporary tables on the disk.

BEST = (
    select(*MEMORY_COLUMNS)
    .where(OPEN)
    .order_by(_m.is_explicit.desc(), *_strongest)
    .limit(bindparam("rows"))
)

WITH_VECTOR = select(*MEMORY_COLUMNS, memory_embeddings.c.vector).select_from(
    memories.outerjoin(
        memory_embeddings,
        and_(
            memory_embeddings.c.memory_id == _m.memory_id,
            memory_embeddings.c.fingerprint == bindparam("fingerprint", type_=Key(64)),
        ),
    )
)
ROWS = (
    WITH_VECTOR.where(_of_user, _active)
    .order_by(_m.is_explicit.desc(), *_strongest)
    .limit(bindparam("rows"))
)
ROW_COUNT = select(func.count()).select_from(memories).where(_of_user, _active)
CHANGES = WITH_VECTOR.where(_of_user, _m.revision > bindparam("after")).order_by(
    _m.revision, _m.memory_id
)
BY_IDS = WITH_VECTOR.where(_m.memory_id.in_(bindparam("memory_ids", expanding=True)))
FIND_ACTIVE = select(*MEMORY_COLUMNS).where(
    _of_user,
    _m.assistant_id == bindparam("assistant_id"),
    _m.run_id == bindparam("run_id"),
    _m.memory_type == bindparam("memory_type"),
    _m.active_key == bindparam("active_key"),
)
PAGE = (
    select(*MEMORY_COLUMNS).where(_of_user).order_by(_m.memory_id.desc()).limit(bindparam("rows"))
)
COUNTS = (
    select(_m.memory_type, _m.status, _m.index_state, func.count())
    .where(_of_user)
    .group_by(_m.memory_type, _m.status, _m.index_state)
)
JOB_COUNTS = (
    select(_j.state, func.count(), func.min(_j.create_time, type_=UtcTime))
    .where(_j.user_id == bindparam("user_id"))
    .group_by(_j.state)
)


def read_state(connection: Connection, user_id: str) -> UserState:
    """Give a user's state."""
    return to_state(user_id, connection.execute(STATE, {"user_id": user_id}).first())


def read_active(connection: Connection, memory: Memory) -> Memory | None:
    """Give the active memory of the same owner that holds the unique key which this would take."""
    values = {
        "user_id": memory.user_id,
        "assistant_id": memory.assistant_id,
        "run_id": memory.run_id,
        "memory_type": memory.memory_type.value,
        "active_key": active_key(replace(memory, status=MemoryStatus.ACTIVE)),
    }
    row = connection.execute(FIND_ACTIVE, values).first()
    return None if row is None else to_memory(row)


class SqlMemoryReader:
    """MemoryReader; every call is one snapshot."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def view(self, wanted: PinnedQuery) -> UserView:
        """See MemoryReader."""
        return await self._database.read(lambda connection: _view(connection, wanted))

    async def best(self, wanted: PinnedQuery, *, limit: int) -> Sequence[Memory]:
        """See MemoryReader."""

        def work(connection: Connection) -> Sequence[Memory]:
            settings = read_state(connection, wanted.scope.user_id).settings
            values = gate_values(wanted, settings) | {"rows": limit}
            statement = BEST.where(of_types(open_types(wanted, settings)))
            return [to_memory(row) for row in connection.execute(statement, values).all()]

        return await self._database.read(work)

    async def rows(
        self, user_id: str, *, fingerprint: str, limit: int
    ) -> tuple[Sequence[StoredRow], int]:
        """See MemoryReader."""

        def work(connection: Connection) -> tuple[Sequence[StoredRow], int]:
            values = {"user_id": user_id, "fingerprint": fingerprint, "rows": limit}
            found = to_stored(connection.execute(ROWS, values).all())
            if len(found) < limit:
                return found, len(found)
            return found, connection.execute(ROW_COUNT, {"user_id": user_id}).scalar_one()

        return await self._database.read(work)

    async def changes(self, user_id: str, *, after: int, fingerprint: str) -> Sequence[StoredRow]:
        """See MemoryReader."""
        values = {"user_id": user_id, "after": after, "fingerprint": fingerprint}
        return await self._database.read(
            lambda connection: to_stored(connection.execute(CHANGES, values).all())
        )

    async def load(
        self, user_id: str, memory_ids: Sequence[str], *, fingerprint: str = ""
    ) -> Sequence[StoredRow]:
        """See MemoryReader."""
        return await self._database.read(
            lambda connection: load_rows(
                connection, BY_IDS.where(_m.user_id == user_id), memory_ids, fingerprint
            )
        )

    async def find_active(self, memory: Memory) -> Memory | None:
        """See MemoryReader."""
        return await self._database.read(lambda connection: read_active(connection, memory))

    async def page(
        self, user_id: str, wanted: MemoryFilter, *, before: str, limit: int
    ) -> Sequence[Memory]:
        """See MemoryReader."""
        statement = _filtered(wanted)
        if before:
            statement = statement.where(_m.memory_id < before)
        values = {"user_id": user_id, "rows": limit}
        return await self._database.read(
            lambda connection: [
                to_memory(row) for row in connection.execute(statement, values).all()
            ]
        )

    async def stats(self, user_id: str) -> StoreStats:
        """See MemoryReader."""
        return await self._database.read(lambda connection: _stats(connection, user_id))


def load_rows(
    connection: Connection,
    by_ids: Select[*tuple[object, ...]],
    ids: Sequence[str],
    fingerprint: str,
) -> Sequence[StoredRow]:
    """Give the rows that a statement like BY_IDS finds, some hundred ids at a time."""
    found: list[StoredRow] = []
    for batch in batches(ids):
        values = {"memory_ids": batch, "fingerprint": fingerprint}
        found.extend(to_stored(connection.execute(by_ids, values).all()))
    return found


def _view(connection: Connection, wanted: PinnedQuery) -> UserView:
    user_id = wanted.scope.user_id
    rows = connection.execute(STATE_AND_UNTOLD, {"user_id": user_id}).all()
    state = to_state(user_id, rows[0][:-2] if rows else None)
    untold = {row[-2]: _doubt(row[-1]) for row in rows if row[-2] is not None}
    types = open_types(wanted, state.settings)
    values = gate_values(wanted, state.settings)
    pinned: list[Memory] = []
    if MemoryType.CONSTRAINT in types:
        pinned += map(to_memory, connection.execute(CONSTRAINTS, values).all())
    if MemoryType.PREFERENCE in types:
        values["preference_limit"] = wanted.preference_limit
        pinned += map(to_memory, connection.execute(PREFERENCES, values).all())
    return UserView(state=state, pinned=pinned, untold=untold)


def _doubt(state: str) -> IndexState:
    return IndexState.FAILED if state == FAILED else IndexState.PENDING


def _filtered(wanted: MemoryFilter) -> Select[*tuple[object, ...]]:
    statement = PAGE
    if wanted.memory_types:
        statement = statement.where(of_types(wanted.memory_types))
    if wanted.statuses:
        statement = statement.where(_m.status.in_(sorted(word.value for word in wanted.statuses)))
    if wanted.text:
        # Not LIKE: per cent signs and underscores are text.
        statement = statement.where(
            or_(
                func.instr(_m.normalized_content, wanted.text) > 0,
                func.instr(_m.normalized_title, wanted.text) > 0,
            )
        )
    return statement


def _stats(connection: Connection, user_id: str) -> StoreStats:
    active: Counter[str] = Counter()
    by_status: Counter[str] = Counter()
    by_index_state: Counter[str] = Counter()
    for word, status, index_state, count in connection.execute(COUNTS, {"user_id": user_id}):
        by_status[status] += count
        by_index_state[index_state] += count
        if status == MemoryStatus.ACTIVE.value:
            known = memory_type(word)
            active[MemoryType.FACT if known is MemoryType.UNKNOWN else known] += count
    jobs = connection.execute(JOB_COUNTS, {"user_id": user_id}).all()
    unfinished = [stored for state, _, stored in jobs if JobState(state).is_unfinished]
    return StoreStats(
        revision=read_state(connection, user_id).revision,
        active_by_type=dict(active),
        memories_by_status=dict(by_status),
        memories_by_index_state=dict(by_index_state),
        jobs_by_state={state: count for state, count, _ in jobs},
        oldest_job=min(unfinished, default=None),
    )
