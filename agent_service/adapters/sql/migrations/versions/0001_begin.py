"""Conversations, turns, and what shall be learnt from them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from database.types import TABLE_OPTIONS, Json, Key, LongBytes, LongText, Serial, UtcTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables; each step may be run again after it died halfway."""
    for name, columns in _TABLES.items():
        op.create_table(name, *columns(), **TABLE_OPTIONS, if_not_exists=True)
    for name, (table, indexed) in _INDEXES.items():
        # MySQL 8 does not know CREATE INDEX IF NOT EXISTS.
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, list(indexed))


def downgrade() -> None:
    """Drop the tables with all that is in them."""
    for name in reversed(_TABLES):
        op.drop_table(name, if_exists=True)


def _id(name: str, **options: Any) -> sa.Column[str]:
    return sa.Column(name, Key(128), nullable=False, **options)


def _word(name: str) -> sa.Column[str]:
    return sa.Column(name, Key(32), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, UtcTime, nullable=nullable)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _small(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _seq() -> sa.Column[int]:
    return sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False)


def _conversation_key() -> list[sa.Column[str]]:
    return [_id("user_id", primary_key=True), _id("conversation_id", primary_key=True)]


def _conversations() -> list[Any]:
    return [
        *_conversation_key(),
        sa.Column("title", sa.String(128), nullable=False),
        _word("status"),
        _small("message_count"),
        _time("last_message_time"),
        _small("last_seq"),
        _id("running_turn_id"),
        _time("create_time"),
    ]


def _messages() -> list[Any]:
    return [
        *_conversation_key(),
        _seq(),
        _id("turn_id"),
        _word("role"),
        sa.Column("text", LongText, nullable=False),
        _flag("incomplete"),
        _time("create_time"),
    ]


def _timeline_events() -> list[Any]:
    return [
        *_conversation_key(),
        _seq(),
        _id("turn_id"),
        sa.Column("event", LongBytes, nullable=True),
        _time("create_time"),
    ]


def _turns() -> list[Any]:
    return [
        _id("turn_id", primary_key=True),
        _id("user_id"),
        _id("conversation_id"),
        _id("client_message_id"),
        sa.Column("digest", Key(64), nullable=False),
        _id("request_id"),
        _id("timezone"),
        _word("state"),
        _id("lease_owner"),
        _id("lease_token"),
        _time("lease_until"),
        _time("heartbeat_time"),
        _flag("cancel_requested"),
        _time("create_time"),
        _time("end_time", nullable=True),
        sa.UniqueConstraint("user_id", "client_message_id", name="turns_client_message"),
    ]


def _turn_events() -> list[Any]:
    return [
        _id("turn_id", primary_key=True),
        _seq(),
        sa.Column("event", LongBytes, nullable=False),
    ]


def _context_stats() -> list[Any]:
    return [
        *_conversation_key(),
        sa.Column("last_report", LongBytes, nullable=False),
        _small("turns"),
        _count("total_tokens"),
        _count("actual_prompt_tokens"),
        _count("dropped"),
        _count("truncated"),
    ]


def _learn_outbox() -> list[Any]:
    return [
        sa.Column("outbox_id", Serial, primary_key=True),
        _id("user_id"),
        _id("conversation_id"),
        _id("turn_id"),
        _id("request_id"),
        sa.Column("messages", Json, nullable=False),
        _word("state"),
        _small("attempt"),
        _time("next_attempt_time"),
        _id("lease_token"),
        _time("lease_until", nullable=True),
        sa.Column("last_error", LongText, nullable=False),
        _time("create_time"),
        sa.UniqueConstraint("turn_id", name="learn_outbox_turn"),
    ]


_TABLES = {
    "conversations": _conversations,
    "messages": _messages,
    "timeline_events": _timeline_events,
    "turns": _turns,
    "turn_events": _turn_events,
    "context_stats": _context_stats,
    "learn_outbox": _learn_outbox,
}
_INDEXES = {
    "conversations_by_time": (
        "conversations",
        ("user_id", "last_message_time", "conversation_id"),
    ),
    "turns_of_conversation": ("turns", ("user_id", "conversation_id")),
    "turns_by_lease": ("turns", ("state", "lease_until")),
    "learn_outbox_due": ("learn_outbox", ("state", "next_attempt_time")),
    "learn_outbox_of_user": ("learn_outbox", ("user_id", "outbox_id")),
}
