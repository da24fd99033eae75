"""Marking a memory as changed since the index was told of it, in the change's own transaction."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, case, insert, update

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


def mark(connection: Connection, memory: Memory, *, is_new: bool, now: datetime) -> None:
    """Note that the index has to be told."""
    if not is_new:
        values = {"its_id": memory.memory_id, "now": now}
        if connection.execute(MARK, values).rowcount:
            return
    connection.execute(
        FIRST_MARK,
        {
            "memory_id": memory.memory_id,
            "user_id": memory.user_id,
            "state": WAITING,
            "mark": 1,
            "claimed_mark": 0,
            "token": "",
            "due_time": now,
            "attempt": 0,
            "told_time": None,
            "last_error": "",
        },
    )
