"""Conversations in SQL, as their users read them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select, update

from agent_service.adapters.sql.schema import (
    TITLE_CHARACTERS,
    context_stats,
    conversations,
    messages,
    timeline_events,
)
from agent_service.codec.reports import decode_report
from agent_service.codec.timelines import decode_timeline_event
from agent_service.domain.errors import ConversationNotFound
from agent_service.domain.model import Conversation, ConversationStatus, Role
from agent_service.domain.text import clean_text
from agent_service.ports import (
    AssistantSaid,
    ContextStats,
    DialogueMessage,
    StoredTimelineEvent,
    TimelineKind,
    UserSaid,
)
from database.access import Database


class SqlConversationStore:
    """A ConversationStore; each call is one snapshot or one short transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def meta(self, user_id: str, conversation_id: str) -> Conversation:
        """Keep the promise of ConversationStore.meta."""
        return await self._database.read(
            lambda connection: _conversation(_find(connection, user_id, conversation_id))
        )

    async def page(
        self,
        user_id: str,
        *,
        status: ConversationStatus | None,
        before: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[Conversation]:
        """Keep the promise of ConversationStore.page."""
        time, name = conversations.c.last_message_time, conversations.c.conversation_id
        wanted = select(conversations).where(conversations.c.user_id == user_id)
        if status is not None:
            wanted = wanted.where(conversations.c.status == status)
        if before is not None:
            at, after_id = before
            wanted = wanted.where(or_(time < at, and_(time == at, name < after_id)))
        wanted = wanted.order_by(time.desc(), name.desc()).limit(limit)
        return await self._database.read(
            lambda connection: [_conversation(row) for row in connection.execute(wanted)]
        )

    async def timeline(
        self,
        user_id: str,
        conversation_id: str,
        *,
        after: int | None,
        before: int | None,
        limit: int,
    ) -> Sequence[StoredTimelineEvent]:
        """Keep the promise of ConversationStore.timeline."""
        seq = timeline_events.c.seq
        wanted = (
            select(timeline_events, messages.c.role, messages.c.text, messages.c.incomplete)
            .outerjoin(messages, _same_place())
            .where(_of(timeline_events, user_id, conversation_id))
            .limit(limit)
        )
        if after is not None:
            wanted = wanted.where(seq > after).order_by(seq)
        else:
            wanted = wanted.order_by(seq.desc())
            wanted = wanted if before is None else wanted.where(seq < before)

        def read(connection: Connection) -> Sequence[StoredTimelineEvent]:
            _find(connection, user_id, conversation_id)
            happened = [_happened(row) for row in connection.execute(wanted)]
            return happened if after is not None else happened[::-1]

        return await self._database.read(read)

    async def recent_messages(
        self, user_id: str, conversation_id: str, *, before_turn: str, limit: int
    ) -> Sequence[DialogueMessage]:
        """Keep the promise of ConversationStore.recent_messages."""
        mine = _of(messages, user_id, conversation_id)
        newest = select(messages).where(mine).order_by(messages.c.seq.desc()).limit(limit)
        first = select(func.min(messages.c.seq)).where(mine, messages.c.turn_id == before_turn)

        def read(connection: Connection) -> Sequence[DialogueMessage]:
            _find(connection, user_id, conversation_id)
            end = connection.scalar(first)
            wanted = newest if end is None else newest.where(messages.c.seq < end)
            return [
                DialogueMessage(Role(row.role), row.text, row.incomplete, row.create_time)
                for row in connection.execute(wanted).all()[::-1]
            ]

        return await self._database.read(read)

    async def context_stats(self, user_id: str, conversation_id: str) -> ContextStats:
        """Keep the promise of ConversationStore.context_stats."""
        wanted = select(context_stats).where(_of(context_stats, user_id, conversation_id))

        def read(connection: Connection) -> ContextStats:
            _find(connection, user_id, conversation_id)
            row = connection.execute(wanted).one_or_none()
            if row is None:
                return ContextStats(None, 0, 0, 0, 0, 0)
            return ContextStats(
                last_report=decode_report(row.last_report),
                turns=row.turns,
                total_tokens=row.total_tokens,
                actual_prompt_tokens=row.actual_prompt_tokens,
                dropped=row.dropped,
                truncated=row.truncated,
            )

        return await self._database.read(read)

    async def set_title_if_empty(self, user_id: str, conversation_id: str, title: str) -> None:
        """Keep the promise of ConversationStore.set_title_if_empty."""
        kept = clean_text(title)[:TITLE_CHARACTERS]

        def work(connection: Connection) -> None:
            _find(connection, user_id, conversation_id)
            connection.execute(
                update(conversations)
                .where(_of(conversations, user_id, conversation_id), conversations.c.title == "")
                .values(title=kept)
            )

        await self._database.write(work, repeatable=True)


def _of(table: Any, user_id: str, conversation_id: str) -> ColumnElement[bool]:
    return and_(table.c.user_id == user_id, table.c.conversation_id == conversation_id)


def _same_place() -> ColumnElement[bool]:
    here, there = timeline_events.c, messages.c
    return and_(
        here.user_id == there.user_id,
        here.conversation_id == there.conversation_id,
        here.seq == there.seq,
    )


def _find(connection: Connection, user_id: str, conversation_id: str) -> Row[Any]:
    row = connection.execute(
        select(conversations).where(_of(conversations, user_id, conversation_id))
    ).one_or_none()
    if row is None:
        raise ConversationNotFound(conversation_id)
    return row


def _conversation(row: Row[Any]) -> Conversation:
    return Conversation(
        user_id=row.user_id,
        conversation_id=row.conversation_id,
        title=row.title,
        message_count=row.message_count,
        last_message_time=row.last_message_time,
        status=ConversationStatus(row.status),
    )


def _happened(row: Row[Any]) -> StoredTimelineEvent:
    return StoredTimelineEvent(row.seq, row.turn_id, row.create_time, _kind(row))


def _kind(row: Row[Any]) -> TimelineKind | None:
    if row.event is not None:
        return decode_timeline_event(row.event)
    if row.role == Role.USER:
        return UserSaid(row.text)
    return AssistantSaid(row.text, row.incomplete)
