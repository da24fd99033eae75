"""The outbox of turns to learn from, in SQL.

A claim takes the first due queues that nobody holds (SKIP LOCKED; on SQLite writers are serial
anyway), and of each the oldest turn. A lease is a token and its end, both in the queue's row, so
that no two relays hold turns of one user.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select, update

from agent_service.adapters.sql.learn_rows import (
    DONE,
    LOCK,
    PARKED,
    PENDING,
    next_turn,
    plan,
    to_turn,
    wake,
)
from agent_service.adapters.sql.schema import learn_outbox, learn_queues
from agent_service.ports import LONGEST_WAIT, ClaimedTurn, NewId, OutboxState, ParkedTurn
from database.access import Database
from database.types import UtcTime

_ERROR_CHARACTERS = 500

_q = learn_queues.c
_o = learn_outbox.c
_its = _o.turn_id == bindparam("its_turn")
_free = (
    select(_q.user_id)
    # Without the index a server might sort, and would lock all that it sorts.
    .with_hint(learn_queues, "FORCE INDEX (learn_queues_due)", "mysql")
    .order_by(_q.due_time)
    .limit(bindparam("rows"))
    .with_for_update(skip_locked=True)
)
DUE = _free.where(_q.due_time <= bindparam("now", type_=UtcTime))
AHEAD = _free.where(_q.due_time > bindparam("latest", type_=UtcTime))
COUNT_ATTEMPT = update(learn_outbox).where(_its).values(attempt=_o.attempt + 1)
SETTLE = (
    update(learn_outbox)
    .where(_its, _o.state == PENDING)
    .values(state=bindparam("new_state"), last_error=bindparam("error"))
)
EMPTY = update(learn_outbox).where(_its).values(messages=[])
REFUND = update(learn_outbox).where(_its).values(attempt=_o.attempt - 1)
STATE = select(_o.state).where(_its)
WAITING = (
    select(_o.state, func.count(), func.min(_o.create_time, type_=UtcTime))
    .where(_o.state.in_((PENDING, PARKED)))
    .group_by(_o.state)
)
OLD = (
    select(_o.outbox_id)
    .where(_o.state == DONE, _o.create_time < bindparam("before", type_=UtcTime))
    .order_by(_o.create_time)
    .limit(bindparam("rows"))
)
PARKED_TURNS = (
    select(_o.user_id, _o.conversation_id, _o.turn_id, _o.attempt, _o.last_error, _o.create_time)
    .where(_o.state == PARKED)
    .order_by(_o.create_time, _o.outbox_id)
    .limit(bindparam("rows"))
)
OWNER = select(_o.user_id).where(_its, _o.state == PARKED)
UNPARK = update(learn_outbox).where(_its, _o.state == PARKED).values(state=PENDING, attempt=0)


class SqlLearnOutbox:
    """LearnOutbox and ParkedTurns."""

    def __init__(self, database: Database, new_id: NewId) -> None:
        self._database = database
        self._new_id = new_id

    async def claim(self, *, limit: int, lease: timedelta, now: datetime) -> Sequence[ClaimedTurn]:
        """Keep the promise of LearnOutbox.claim."""
        token = self._new_id()
        latest = now + 2 * max(lease, LONGEST_WAIT)

        def work(connection: Connection) -> Sequence[ClaimedTurn]:
            users = connection.scalars(AHEAD, {"latest": latest, "rows": limit}).all()
            left = limit - len(users)
            users = [*users, *connection.scalars(DUE, {"now": now, "rows": left})]
            taken = [_take(connection, user_id, token, now + lease) for user_id in users]
            return [claimed for claimed in taken if claimed is not None]

        return await self._database.write(work)

    async def delivered(self, claimed: ClaimedTurn, *, now: datetime) -> bool:
        """Keep the promise of LearnOutbox.delivered; once more changes nothing and is True."""

        def work(connection: Connection) -> bool:
            if not _holds(connection, claimed):
                return connection.scalar(STATE, _key(claimed)) == DONE
            _settle(connection, claimed, DONE, "")
            connection.execute(EMPTY, _key(claimed))
            _go_on(connection, claimed.turn.user_id, now)
            return True

        return await self._database.write(work, repeatable=True)

    async def give_back(
        self, claimed: ClaimedTurn, *, error: str, retry_at: datetime, refund: bool
    ) -> bool:
        """Keep the promise of LearnOutbox.give_back; only 500 characters of error are kept."""

        def work(connection: Connection) -> None:
            _settle(connection, claimed, PENDING, error)
            if refund:
                connection.execute(REFUND, _key(claimed))
            plan(connection, claimed.turn.user_id, retry_at)

        return await self._if_held(claimed, work)

    async def park(self, claimed: ClaimedTurn, *, error: str, now: datetime) -> bool:
        """Keep the promise of LearnOutbox.park; only 500 characters of error are kept."""

        def work(connection: Connection) -> None:
            _settle(connection, claimed, PARKED, error)
            _go_on(connection, claimed.turn.user_id, now)

        return await self._if_held(claimed, work)

    async def state(self) -> OutboxState:
        """Keep the promise of LearnOutbox.state."""
        rows = await self._database.read(lambda connection: connection.execute(WAITING).all())
        count = {state: number for state, number, _ in rows}
        return OutboxState(
            pending=count.get(PENDING, 0),
            parked=count.get(PARKED, 0),
            oldest=next((time for state, _, time in rows if state == PENDING), None),
        )

    async def forget(self, *, before: datetime, limit: int) -> int:
        """Keep the promise of LearnOutbox.forget."""

        def work(connection: Connection) -> int:
            old = connection.scalars(OLD, {"before": before, "rows": limit}).all()
            connection.execute(delete(learn_outbox).where(_o.outbox_id.in_(old)))
            return len(old)

        return await self._database.write(work, repeatable=True)

    async def parked(self, *, limit: int) -> Sequence[ParkedTurn]:
        """Keep the promise of ParkedTurns.parked."""
        rows = await self._database.read(
            lambda connection: connection.execute(PARKED_TURNS, {"rows": limit}).all()
        )
        return [
            ParkedTurn(
                user_id=row.user_id,
                conversation_id=row.conversation_id,
                turn_id=row.turn_id,
                attempt=row.attempt,
                error=row.last_error,
                create_time=row.create_time,
            )
            for row in rows
        ]

    async def retry(self, turn_id: str, *, now: datetime) -> bool:
        """Keep the promise of ParkedTurns.retry."""

        def work(connection: Connection) -> bool:
            user_id = connection.scalar(OWNER, {"its_turn": turn_id})
            if user_id is None:
                return False
            wake(connection, user_id, now)
            return bool(connection.execute(UNPARK, {"its_turn": turn_id}).rowcount)

        return await self._database.write(work)

    async def _if_held(self, claimed: ClaimedTurn, change: Callable[[Connection], None]) -> bool:
        def work(connection: Connection) -> bool:
            held = _holds(connection, claimed)
            if held:
                change(connection)
            return held

        return await self._database.write(work)


def _take(
    connection: Connection, user_id: str, token: str, lease_end: datetime
) -> ClaimedTurn | None:
    row = next_turn(connection, user_id)
    if row is None:
        plan(connection, user_id, None)
        return None
    connection.execute(COUNT_ATTEMPT, {"its_turn": row.turn_id})
    plan(connection, user_id, lease_end, token=token)
    return ClaimedTurn(turn=to_turn(row), attempt=row.attempt + 1, token=token)


def _holds(connection: Connection, claimed: ClaimedTurn) -> bool:
    """Take the user's lock and tell whether the claim still holds the user's turn."""
    token = connection.scalar(LOCK, {"its_user": claimed.turn.user_id})
    return token == claimed.token


def _settle(connection: Connection, claimed: ClaimedTurn, state: str, error: str) -> None:
    values = {"new_state": state, "error": error[:_ERROR_CHARACTERS]}
    connection.execute(SETTLE, _key(claimed) | values)


def _go_on(connection: Connection, user_id: str, now: datetime) -> None:
    """Let the user's next turn be due, if there is one."""
    following = next_turn(connection, user_id)
    plan(connection, user_id, None if following is None else now)


def _key(claimed: ClaimedTurn) -> dict[str, Any]:
    return {"its_turn": claimed.turn.turn_id}
