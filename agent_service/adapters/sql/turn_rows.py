"""Rows of turns and of their events, and inserting what another may insert too."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, insert, select
from sqlalchemy.exc import IntegrityError

from agent_service.adapters.sql.schema import turn_events, turns
from agent_service.codec.events import decode_event, encode_event
from agent_service.domain.errors import LeaseLost
from agent_service.domain.model import TurnEvent, TurnKey
from agent_service.ports import TurnLease
from database.transient import Again

RUNNING = "running"
ENDED = "ended"


def find_turn(connection: Connection, key: TurnKey) -> Row[Any] | None:
    """Give a turn as it is."""
    return connection.execute(_turn(key)).one_or_none()


def lock_turn(connection: Connection, key: TurnKey) -> Row[Any] | None:
    """Give a turn, locked until the transaction ends."""
    return connection.execute(_turn(key).with_for_update()).one_or_none()


def hold(connection: Connection, lease: TurnLease) -> Row[Any]:
    """Lock the turn that a lease holds. Raises LeaseLost when it does not hold it any more."""
    turn = lock_turn(connection, lease.key)
    if turn is None or turn.state != RUNNING or turn.lease_token != lease.token:
        raise LeaseLost(lease.turn_id)
    return turn


def _turn(key: TurnKey) -> Select[Any]:
    return select(turns).where(
        turns.c.turn_id == key.turn_id,
        turns.c.user_id == key.user_id,
        turns.c.conversation_id == key.conversation_id,
    )


def stored_events(
    connection: Connection, turn_id: str, *, after_seq: int = 0
) -> Sequence[TurnEvent]:
    """Give the events of a turn above a seq, without kinds that this version does not know."""
    rows = connection.scalars(
        select(turn_events.c.event)
        .where(turn_events.c.turn_id == turn_id, turn_events.c.seq > after_seq)
        .order_by(turn_events.c.seq)
    )
    return [event for event in map(decode_event, rows) if event is not None]


def store_events(connection: Connection, turn_id: str, events: Sequence[TurnEvent]) -> None:
    """Store events of a locked turn; those stored already were sent twice and stay as they are."""
    last = last_seq(connection, turn_id)
    rows = [
        {"turn_id": turn_id, "seq": event.seq, "event": encode_event(event)}
        for event in events
        if event.seq > last
    ]
    if rows:
        connection.execute(insert(turn_events), rows)


def last_seq(connection: Connection, turn_id: str) -> int:
    """Give the seq of a turn's last event; started is always there."""
    newest = (
        select(turn_events.c.seq)
        .where(turn_events.c.turn_id == turn_id)
        .order_by(turn_events.c.seq.desc())
        .limit(1)
    )
    return connection.scalars(newest).one_or_none() or 0


def is_expired(turn: Row[Any], now: datetime) -> bool:
    """Tell whether a turn is running and nobody holds it any more."""
    return bool(turn.state == RUNNING and turn.lease_until <= now)


def insert_or_lose(connection: Connection, table: Table, row: dict[str, object]) -> None:
    """Insert a row. Raises Again if another inserted it first: run again, and find it."""
    try:
        connection.execute(insert(table).values(row))
    except IntegrityError as error:
        raise Again from error
