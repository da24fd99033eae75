"""Writing to a conversation whose row is locked: timeline, messages, counters."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, insert, select, update

from agent_service.adapters.sql.schema import conversations, messages, timeline_events
from agent_service.codec.timelines import encode_timeline_event
from agent_service.domain.model import Role
from agent_service.domain.text import clean_text
from agent_service.ports import AssistantSaid, TimelineKind, UserSaid


def lock_conversation(
    connection: Connection, user_id: str, conversation_id: str
) -> Row[Any] | None:
    """Give the row, locked until the transaction ends; None if there is none."""
    return connection.execute(
        select(conversations)
        .where(
            conversations.c.user_id == user_id,
            conversations.c.conversation_id == conversation_id,
        )
        .with_for_update()
    ).one_or_none()


def add_to_timeline(
    connection: Connection,
    conversation: Row[Any],
    turn_id: str,
    kinds: Sequence[TimelineKind],
    *,
    running_turn_id: str,
    now: datetime,
) -> None:
    """Store what happened, in order, and say which turn runs from now on.

    conversation is the locked row as it is in the database; it is out of date afterwards.
    """
    key = {"user_id": conversation.user_id, "conversation_id": conversation.conversation_id}
    numbered = list(enumerate(kinds, conversation.last_seq + 1))
    happened = [
        {
            **key,
            "seq": seq,
            "turn_id": turn_id,
            "event": None if _is_message(kind) else encode_timeline_event(kind),
            "create_time": now,
        }
        for seq, kind in numbered
    ]
    said = [
        {**key, "seq": seq, "turn_id": turn_id, "create_time": now, **_message(kind)}
        for seq, kind in numbered
        if isinstance(kind, UserSaid | AssistantSaid)
    ]
    if happened:
        connection.execute(insert(timeline_events), happened)
    if said:
        connection.execute(insert(messages), said)
    connection.execute(
        update(conversations)
        .where(and_(*(conversations.c[name] == value for name, value in key.items())))
        .values(
            last_seq=conversation.last_seq + len(happened),
            message_count=conversation.message_count + len(said),
            # Clocks of replicas differ; a list by time must not jump back.
            last_message_time=(
                max(now, conversation.last_message_time) if said else conversation.last_message_time
            ),
            running_turn_id=running_turn_id,
        )
    )


def _is_message(kind: TimelineKind) -> bool:
    return isinstance(kind, UserSaid | AssistantSaid)


def _message(kind: UserSaid | AssistantSaid) -> dict[str, object]:
    if isinstance(kind, UserSaid):
        return {"role": Role.USER, "text": clean_text(kind.text), "incomplete": False}
    return {
        "role": Role.ASSISTANT,
        "text": clean_text(kind.text),
        "incomplete": kind.incomplete,
    }
