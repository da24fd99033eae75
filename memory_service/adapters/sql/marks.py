"""Marking a memory as changed since the index was told of it, in the change's own transaction."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, case, insert, select, update
from sqlalchemy.exc import IntegrityError

from database.types import UtcTime
from memory_service.adapters.sql.schema import memory_index_outbox
from memory_service.domain.model import Memory

WAITING = "waiting"
TOLD = "told"
FAILED = "failed"
"""States of a note. A told one stays until searches see the change for sure, a failed one until
the memory changes."""

_o = memory_index_outbox.c

MARK = (
    update(memory_index_outbox)
    .where(_o.memory_id == bindparam("its_id"))
    .values(
        state=WAITING,
        mark=_o.mark + 1,
        # Under a lease it is not due: a second relay would tell the index at the same time, and the
        # older words might arrive last. The relay that holds it gives it back.
        due_time=case((_o.token == "", bindparam("now", type_=UtcTime)), else_=_o.due_time),
        attempt=0,
        told_time=None,
        last_error="",
    )
)
FIRST_MARK = insert(memory_index_outbox)
MARKED = (
    select(_o.memory_id)
    .where(_o.memory_id.in_(bindparam("memory_ids", expanding=True)))
    .with_for_update()
)


def mark(connection: Connection, memory: Memory, *, is_new: bool, now: datetime) -> None:
    """Note that the index has to be told. A new memory may have an id that another one left."""
    first = _first(memory.memory_id, memory.user_id, now)
    if is_new and _inserted(connection, first):
        return
    if not connection.execute(MARK, {"its_id": memory.memory_id, "now": now}).rowcount:
        connection.execute(FIRST_MARK, first)


def mark_all(
    connection: Connection, memory_ids: Sequence[str], *, user_id: str, now: datetime
) -> int:
    """Note that the index has to be told about each; gives how many had a note before.

    Some hundred ids at a time. They need not be memories any more: the index forgets those.
    """
    known = sorted(connection.scalars(MARKED, {"memory_ids": list(memory_ids)}))
    if known:
        connection.execute(MARK, [{"its_id": each, "now": now} for each in known])
    missing = sorted(set(memory_ids).difference(known))
    if missing:
        connection.execute(FIRST_MARK, [_first(each, user_id, now) for each in missing])
    return len(known)


def _inserted(connection: Connection, first: dict[str, object]) -> bool:
    try:
        connection.execute(FIRST_MARK, first)
    except IntegrityError:
        return False
    return True


def _first(memory_id: str, user_id: str, now: datetime) -> dict[str, object]:
    return {
        "memory_id": memory_id,
        "user_id": user_id,
        "state": WAITING,
        "mark": 1,
        "claimed_mark": 0,
        "token": "",
        "due_time": now,
        "attempt": 0,
        "told_time": None,
        "last_error": "",
    }
