"""The transaction that opens a turn."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, select

from agent_service.adapters.sql.closing import close_if_lost
from agent_service.adapters.sql.schema import conversations, turns
from agent_service.adapters.sql.timeline import add_to_timeline, lock_conversation
from agent_service.adapters.sql.turn_rows import (
    RUNNING,
    insert_or_lose,
    store_events,
    stored_events,
)
from agent_service.domain.errors import ClientMessageIdReused, TurnRunning
from agent_service.domain.model import ConversationStatus, Started, TurnEvent, TurnKey
from agent_service.ports import NewTurn, TurnKnown, TurnLease, TurnOpened, UserSaid
from database.transient import Again


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who takes the lease, and for how long."""

    owner: str
    token: str
    lease: timedelta


def open_turn(connection: Connection, turn: NewTurn, holder: Holder) -> TurnOpened | TurnKnown:
    """Keep the promise of TurnStore.open."""
    conversation = lock_conversation(connection, turn.user_id, turn.conversation_id)
    # After the lock: who waited for it sees what the other stored.
    known = _find_by_client_message(connection, turn)
    if known is not None:
        return _known(connection, known, turn)
    created = conversation is None
    if conversation is None:
        conversation = _begin_conversation(connection, turn)
    elif conversation.running_turn_id:
        conversation = _end_lost(connection, turn, conversation.running_turn_id, holder)
    insert_or_lose(connection, turns, _row(turn, holder))
    add_to_timeline(
        connection,
        conversation,
        turn.turn_id,
        [UserSaid(turn.text)],
        running_turn_id=turn.turn_id,
        now=turn.now,
    )
    event = Started(turn.conversation_id, turn.turn_id, turn.request_id, created)
    started = TurnEvent(1, event)
    store_events(connection, turn.turn_id, [started])
    return TurnOpened(_lease(turn, holder.token), started)


def _find_by_client_message(connection: Connection, turn: NewTurn) -> Row[Any] | None:
    return connection.execute(
        select(turns).where(
            turns.c.user_id == turn.user_id,
            turns.c.client_message_id == turn.client_message_id,
        )
    ).one_or_none()


def _known(connection: Connection, known: Row[Any], turn: NewTurn) -> TurnOpened | TurnKnown:
    if known.digest != turn.digest.hex():
        raise ClientMessageIdReused(turn.client_message_id)
    if known.turn_id != turn.turn_id:
        return TurnKnown(known.conversation_id, known.turn_id)
    # Ours, run again: it was committed, and only the answer was lost.
    return TurnOpened(_lease(turn, known.lease_token), stored_events(connection, turn.turn_id)[0])


def _end_lost(
    connection: Connection, turn: NewTurn, running_turn_id: str, holder: Holder
) -> Row[Any]:
    key = TurnKey(turn.user_id, turn.conversation_id, running_turn_id)
    # The token of the new turn fences the old one as well as any other would.
    if not close_if_lost(connection, key, token=holder.token, now=turn.now):
        raise TurnRunning(running_turn_id)
    return _locked(connection, turn)


def _begin_conversation(connection: Connection, turn: NewTurn) -> Row[Any]:
    insert_or_lose(
        connection,
        conversations,
        {
            "user_id": turn.user_id,
            "conversation_id": turn.conversation_id,
            "title": "",
            "status": ConversationStatus.ACTIVE,
            "message_count": 0,
            "last_message_time": turn.now,
            "last_seq": 0,
            "running_turn_id": "",
            "create_time": turn.now,
        },
    )
    return _locked(connection, turn)


def _locked(connection: Connection, turn: NewTurn) -> Row[Any]:
    conversation = lock_conversation(connection, turn.user_id, turn.conversation_id)
    if conversation is None:  # pragma: no cover — this transaction holds or made the row
        raise Again
    return conversation


def _row(turn: NewTurn, holder: Holder) -> dict[str, object]:
    return {
        "turn_id": turn.turn_id,
        "user_id": turn.user_id,
        "conversation_id": turn.conversation_id,
        "client_message_id": turn.client_message_id,
        "digest": turn.digest.hex(),
        "request_id": turn.request_id,
        "timezone": turn.timezone,
        "state": RUNNING,
        "lease_owner": holder.owner,
        "lease_token": holder.token,
        "lease_until": turn.now + holder.lease,
        "heartbeat_time": turn.now,
        "cancel_requested": False,
        "create_time": turn.now,
    }


def _lease(turn: NewTurn, token: str) -> TurnLease:
    return TurnLease(
        user_id=turn.user_id,
        conversation_id=turn.conversation_id,
        turn_id=turn.turn_id,
        token=token,
    )
