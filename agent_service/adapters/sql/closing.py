"""The closing transaction of a turn, also of one whose process is gone.

Locks are always taken in this order: conversation, turn, queue of the user.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, update

from agent_service.adapters.sql.learn_rows import ask_to_learn
from agent_service.adapters.sql.schema import context_stats, turns
from agent_service.adapters.sql.timeline import add_to_timeline, lock_conversation
from agent_service.adapters.sql.turn_rows import (
    ENDED,
    find_turn,
    is_expired,
    last_seq,
    lock_turn,
    store_events,
    stored_events,
)
from agent_service.codec.reports import encode_report
from agent_service.domain.context import ContextReport
from agent_service.domain.errors import LeaseLost
from agent_service.domain.model import (
    ContextAssembled,
    Delta,
    Failed,
    MemoryUsed,
    ThinkingSummary,
    TurnEvent,
    TurnKey,
)
from agent_service.domain.text import clean_text
from agent_service.ports import AssistantSaid, TimelineKind, TurnClosing

LOST_TEXT = "The turn was interrupted."


def close_if_lost(connection: Connection, key: TurnKey, *, token: str, now: datetime) -> bool:
    """Close a turn whose lease ran out, and tell whether it did.

    What was said is kept as incomplete. token takes the place of the turn's own, so that the
    process that lost it learns so.
    """
    turn = find_turn(connection, key)
    if turn is None or not is_expired(turn, now):
        return False
    conversation = lock_conversation(connection, key.user_id, key.conversation_id)
    turn = lock_turn(connection, key)
    if conversation is None or turn is None or not is_expired(turn, now):
        return False
    _close_lost(connection, conversation, turn, token=token, now=now)
    return True


def close_turn(
    connection: Connection, conversation: Row[Any], turn: Row[Any], closing: TurnClosing
) -> None:
    """Store all that a turn leaves behind; conversation and turn are locked rows."""
    store_events(connection, turn.turn_id, closing.events)
    answer = clean_text(closing.answer)
    answer = answer if answer.strip() else ""
    kinds = _timeline_of(
        stored_events(connection, turn.turn_id), answer, incomplete=closing.incomplete
    )
    add_to_timeline(
        connection, conversation, turn.turn_id, kinds, running_turn_id="", now=closing.now
    )
    if closing.report is not None:
        _add_to_stats(connection, turn, closing.report)
    ask_to_learn(connection, turn, answer, closing.now)
    connection.execute(
        update(turns)
        .where(turns.c.turn_id == turn.turn_id)
        .values(state=ENDED, end_time=closing.now)
    )


def _close_lost(
    connection: Connection, conversation: Row[Any], turn: Row[Any], *, token: str, now: datetime
) -> None:
    turn_id = turn.turn_id
    connection.execute(update(turns).where(turns.c.turn_id == turn_id).values(lease_token=token))
    events = stored_events(connection, turn_id)
    reports = [event.event.report for event in events if isinstance(event.event, ContextAssembled)]
    end = TurnEvent(last_seq(connection, turn_id) + 1, Failed(LeaseLost.reason, LOST_TEXT))
    closing = TurnClosing(
        events=[end],
        answer="".join(event.event.text for event in events if isinstance(event.event, Delta)),
        incomplete=True,
        report=reports[-1] if reports else None,
        now=now,
    )
    close_turn(connection, conversation, turn, closing)


def _timeline_of(
    events: Sequence[TurnEvent], answer: str, *, incomplete: bool
) -> list[TimelineKind]:
    kinds: list[TimelineKind] = []
    failures: list[TimelineKind] = []
    for turn_event in events:
        match turn_event.event:
            case MemoryUsed() | ContextAssembled() | ThinkingSummary() as kind:
                kinds.append(kind)
            case Failed() as failure:
                failures.append(failure)
            case _:
                pass
    said: list[TimelineKind] = [AssistantSaid(answer, incomplete)] if answer else []
    return [*kinds, *said, *failures]


def _add_to_stats(connection: Connection, turn: Row[Any], report: ContextReport) -> None:
    mine = (
        context_stats.c.user_id == turn.user_id,
        context_stats.c.conversation_id == turn.conversation_id,
    )
    counted = {
        "turns": 1,
        "total_tokens": report.total_tokens,
        "actual_prompt_tokens": report.actual_prompt_tokens or 0,
        "dropped": report.dropped,
        "truncated": report.truncated,
    }
    stored = encode_report(report)
    raised = {name: context_stats.c[name] + count for name, count in counted.items()}
    # The conversation is locked: nobody else inserts the row meanwhile.
    found = connection.execute(
        update(context_stats).where(*mine).values(last_report=stored, **raised)
    )
    if not found.rowcount:
        connection.execute(
            insert(context_stats).values(
                user_id=turn.user_id,
                conversation_id=turn.conversation_id,
                last_report=stored,
                **counted,
            )
        )
