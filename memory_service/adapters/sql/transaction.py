"""One user's write transaction."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from database.transient import Again
from memory_service.adapters.sql.documents import document
from memory_service.adapters.sql.job_rows import SqlJobRows
from memory_service.adapters.sql.marks import mark
from memory_service.adapters.sql.reader import read_active, read_state
from memory_service.adapters.sql.removal import SqlRemoval
from memory_service.adapters.sql.rows import (
    MEMORY_COLUMNS,
    from_memory,
    from_settings,
    to_memory,
)
from memory_service.adapters.sql.schema import (
    memories,
    memory_embeddings,
    memory_history,
    memory_user_states,
)
from memory_service.adapters.sql.vectors import to_bytes
from memory_service.domain.change import Change
from memory_service.domain.errors import EqualMemoryExists, MemoryIdTaken, MemoryNotFound
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    UserSettings,
    UserState,
)
from memory_service.domain.text import indexed_text
from memory_service.ports import Clock, Vector

_m = memories.c
_s = memory_user_states.c
_of_user = _s.user_id == bindparam("owner")

RAISE = update(memory_user_states).where(_of_user).values(revision=_s.revision + 1)
SET_SETTINGS = update(memory_user_states).where(_of_user)
FIRST_STATE = insert(memory_user_states)

GET = select(*MEMORY_COLUMNS).where(
    _m.memory_id == bindparam("memory_id"), _m.user_id == bindparam("user_id")
)
CHANGED = (
    select(*MEMORY_COLUMNS)
    .where(_m.user_id == bindparam("user_id"), _m.revision > bindparam("after"))
    .order_by(_m.revision, _m.memory_id)
)
INSERT = insert(memories)
UPDATE = update(memories).where(
    _m.memory_id == bindparam("its_id"), _m.user_id == bindparam("owner")
)
NOTE_HISTORY = insert(memory_history)
FORGET_EMBEDDINGS = delete(memory_embeddings).where(
    memory_embeddings.c.memory_id == bindparam("memory_id")
)
FORGET_EMBEDDING = FORGET_EMBEDDINGS.where(
    memory_embeddings.c.fingerprint == bindparam("fingerprint")
)
KEEP_EMBEDDING = insert(memory_embeddings)


def raise_revision(connection: Connection, user_id: str) -> None:
    """Take the user's lock: the row of their state, held until the transaction ends.

    A row that is missing cannot be locked, so the first writer inserts it; of two first writers
    one is run again.
    """
    if connection.execute(RAISE, {"owner": user_id}).rowcount:
        return
    first = UserState(user_id=user_id, revision=1)
    values = {
        "user_id": user_id,
        "revision": first.revision,
        **from_settings(first.settings),
        "erase_time": None,
        "erase_revision": 0,
        "purge_revision": 0,
        "erasing": "",
    }
    try:
        connection.execute(FIRST_STATE, values)
    except IntegrityError as error:
        raise Again from error


class SqlTransaction:
    """Transaction; made after raise_revision, on the same connection."""

    def __init__(self, connection: Connection, user_id: str, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._state = read_state(connection, user_id)

    @property
    def state(self) -> UserState:
        """See Transaction."""
        return self._state

    @property
    def jobs(self) -> SqlJobRows:
        """See Transaction."""
        return SqlJobRows(self._connection, self._state.user_id, self._state.revision)

    @property
    def removal(self) -> SqlRemoval:
        """See Transaction."""
        return SqlRemoval(self._connection, self._state, self._clock())

    def get(self, memory_id: str) -> Memory | None:
        """See Transaction."""
        values = {"memory_id": memory_id, "user_id": self._state.user_id}
        row = self._connection.execute(GET, values).first()
        return None if row is None else to_memory(row)

    def find_active(self, memory: Memory) -> Memory | None:
        """See Transaction."""
        return read_active(self._connection, replace(memory, user_id=self._state.user_id))

    def changes(self, after: int) -> Sequence[Memory]:
        """See Transaction."""
        values = {"user_id": self._state.user_id, "after": after}
        return [to_memory(row) for row in self._connection.execute(CHANGED, values).all()]

    def put(self, change: Change, vector: Vector | None = None, fingerprint: str = "") -> Memory:
        """See Transaction.

        Raises EqualMemoryExists if another active memory holds its unique key, MemoryIdTaken if a
        new memory's id is in use, MemoryNotFound if there is nothing of this user to replace.
        Nothing is stored then, and the transaction may go on.
        """
        index_state = IndexState.PENDING if change.concerns_index else IndexState.REMOVED
        after = replace(change.after, revision=self._state.revision, index_state=index_state)
        if after.user_id != self._state.user_id:
            raise MemoryNotFound
        if change.before is None:
            self._insert(after)
        else:
            self._update(after)
            if indexed_text(change.before) != indexed_text(after):
                self._connection.execute(FORGET_EMBEDDINGS, {"memory_id": after.memory_id})
        if vector is not None:
            self._keep(after.memory_id, vector, fingerprint, is_new=change.before is None)
        if change.concerns_index:
            mark(self._connection, after, is_new=change.before is None, now=self._clock())
        self._note(change, after)
        return after

    def set_settings(self, settings: UserSettings) -> UserState:
        """See Transaction."""
        values = {"owner": self._state.user_id, **from_settings(settings)}
        self._connection.execute(SET_SETTINGS, values)
        self._state = replace(self._state, settings=settings)
        return self._state

    def _insert(self, after: Memory) -> None:
        try:
            self._connection.execute(INSERT, from_memory(after))
        except IntegrityError as error:
            # The row's key and the active key are the only two that it can break.
            if after.status is MemoryStatus.ACTIVE and self.find_active(after) is not None:
                raise EqualMemoryExists from error
            raise MemoryIdTaken from error

    def _update(self, after: Memory) -> None:
        values = from_memory(after) | {"its_id": after.memory_id, "owner": after.user_id}
        try:
            replaced = self._connection.execute(UPDATE, values).rowcount
        except IntegrityError as error:
            raise EqualMemoryExists from error
        if not replaced:
            raise MemoryNotFound

    def _keep(self, memory_id: str, vector: Vector, fingerprint: str, *, is_new: bool) -> None:
        key = {"memory_id": memory_id, "fingerprint": fingerprint}
        if not is_new:
            self._connection.execute(FORGET_EMBEDDING, key)
        self._connection.execute(KEEP_EMBEDDING, key | {"vector": to_bytes(vector)})

    def _note(self, change: Change, after: Memory) -> None:
        self._connection.execute(
            NOTE_HISTORY,
            {
                "user_id": after.user_id,
                "memory_id": after.memory_id,
                "version": after.version,
                "revision": after.revision,
                "operation": change.operation.value,
                "actor": change.actor,
                "reason": change.reason,
                "before": None if change.before is None else document(change.before),
                "after": document(after),
                "decision": None if change.decision is None else document(change.decision),
                "create_time": self._clock(),
            },
        )
