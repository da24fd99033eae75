"""Rows of the outbox and of its queues, inside a transaction.

Whoever changes what a user has in the outbox holds the user's lock, the row in learn_queues, which
also notes when the next turn is due: so a claim costs the same however many turns wait, and turns
get their numbers in the order in which their ends are committed.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from agent_service.adapters.sql.schema import learn_outbox, learn_queues, messages
from agent_service.adapters.sql.turn_rows import insert_or_lose
from agent_service.domain.learning import Spoken, TurnToLearn
from agent_service.domain.model import Role
from database.types import UtcTime

PENDING, DONE, PARKED = "pending", "done", "parked"

_q = learn_queues.c
_o = learn_outbox.c
_m = messages.c
_of_user = _q.user_id == bindparam("its_user")

LOCK = select(_q.lease_token).where(_of_user).with_for_update()
# Also the lock of a closing turn: a queue that waits or is leased keeps its time.
WAKE = (
    update(learn_queues)
    .where(_of_user)
    .values(due_time=func.coalesce(_q.due_time, bindparam("now", type_=UtcTime)))
)
PLAN = (
    update(learn_queues)
    .where(_of_user)
    .values(due_time=bindparam("due", type_=UtcTime), lease_token=bindparam("new_token"))
)
NEXT = (
    select(learn_outbox)
    .where(_o.user_id == bindparam("its_user"), _o.state == PENDING)
    .order_by(_o.outbox_id)
    .limit(1)
)
SAID = select(_m.text, _m.create_time).where(
    _m.user_id == bindparam("its_user"),
    _m.conversation_id == bindparam("its_conversation"),
    _m.turn_id == bindparam("its_turn"),
    _m.role == Role.USER,
)


def ask_to_learn(connection: Connection, turn: Row[Any], answer: str, now: datetime) -> None:
    """Add a turn that ends to the outbox; it and its conversation are locked."""
    its = {
        "its_user": turn.user_id,
        "its_conversation": turn.conversation_id,
        "its_turn": turn.turn_id,
    }
    said = connection.execute(SAID, its).one()
    spoken = [(Role.USER, said.text, said.create_time)]
    if answer:
        spoken.append((Role.ASSISTANT, answer, now))
    wake(connection, turn.user_id, now)  # the lock comes first, then the number
    connection.execute(
        insert(learn_outbox).values(
            user_id=turn.user_id,
            conversation_id=turn.conversation_id,
            turn_id=turn.turn_id,
            request_id=turn.turn_id,
            messages=[
                {
                    "role": role,
                    "content": text,
                    "create_time": time.isoformat(),
                    "timezone": turn.timezone,
                }
                for role, text, time in spoken
            ],
            state=PENDING,
            attempt=0,
            last_error="",
            create_time=now,
        )
    )


def wake(connection: Connection, user_id: str, now: datetime) -> None:
    """Take a user's lock and let the queue be due, unless it waits for something already.

    Raises Again if another transaction made the queue meanwhile.
    """
    if connection.execute(WAKE, {"its_user": user_id, "now": now}).rowcount:
        return
    insert_or_lose(
        connection, learn_queues, {"user_id": user_id, "due_time": now, "lease_token": ""}
    )


def plan(connection: Connection, user_id: str, due: datetime | None, *, token: str = "") -> None:
    """Say when the queue of a user is due, and who holds its turn; the user's lock is held."""
    connection.execute(PLAN, {"its_user": user_id, "due": due, "new_token": token})


def next_turn(connection: Connection, user_id: str) -> Row[Any] | None:
    """Give the row of the user's oldest pending turn."""
    return connection.execute(NEXT, {"its_user": user_id}).one_or_none()


def to_turn(row: Row[Any]) -> TurnToLearn:
    """Read a row that is not done."""
    return TurnToLearn(
        user_id=row.user_id,
        conversation_id=row.conversation_id,
        turn_id=row.turn_id,
        request_id=row.request_id,
        messages=[
            Spoken(
                role=Role(said["role"]),
                content=said["content"],
                create_time=datetime.fromisoformat(said["create_time"]),
                timezone=said["timezone"],
            )
            for said in row.messages
        ],
    )
