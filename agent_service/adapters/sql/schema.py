"""Tables of the agent service; migrations/ makes them, a test compares both."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from database.types import TABLE_OPTIONS, Json, Key, LongBytes, LongText, Serial, UtcTime

ID_BYTES = 128
WORD_BYTES = 32
DIGEST_BYTES = 64
TITLE_CHARACTERS = 128

metadata = MetaData()


def _id(name: str, **options: Any) -> Column[str]:
    return Column(name, Key(ID_BYTES), nullable=False, **options)


def _word(name: str) -> Column[str]:
    return Column(name, Key(WORD_BYTES), nullable=False)


conversations = Table(
    "conversations",
    metadata,
    _id("user_id", primary_key=True),
    _id("conversation_id", primary_key=True),
    Column("title", String(TITLE_CHARACTERS), nullable=False),
    _word("status"),
    Column("message_count", Integer, nullable=False),
    Column("last_message_time", UtcTime, nullable=False),
    # Of timeline_events; its row lock is the lock of the conversation.
    Column("last_seq", Integer, nullable=False),
    # Empty: none runs.
    _id("running_turn_id"),
    Column("create_time", UtcTime, nullable=False),
    Index("conversations_by_time", "user_id", "last_message_time", "conversation_id"),
    **TABLE_OPTIONS,
)

messages = Table(
    "messages",
    metadata,
    _id("user_id", primary_key=True),
    _id("conversation_id", primary_key=True),
    # Place in the timeline.
    Column("seq", Integer, primary_key=True, autoincrement=False),
    _id("turn_id"),
    _word("role"),
    Column("text", LongText, nullable=False),
    Column("incomplete", Boolean, nullable=False),
    Column("create_time", UtcTime, nullable=False),
    **TABLE_OPTIONS,
)

timeline_events = Table(
    "timeline_events",
    metadata,
    _id("user_id", primary_key=True),
    _id("conversation_id", primary_key=True),
    # From 1 without gaps.
    Column("seq", Integer, primary_key=True, autoincrement=False),
    _id("turn_id"),
    # A TimelineEvent without place and time. NULL: the message of this seq.
    Column("event", LongBytes, nullable=True),
    Column("create_time", UtcTime, nullable=False),
    **TABLE_OPTIONS,
)

turns = Table(
    "turns",
    metadata,
    _id("turn_id", primary_key=True),
    _id("user_id"),
    _id("conversation_id"),
    _id("client_message_id"),
    Column("digest", Key(DIGEST_BYTES), nullable=False),
    _id("request_id"),
    _id("timezone"),
    # running or ended.
    _word("state"),
    # For people: which process runs it.
    _id("lease_owner"),
    # Fences a process that lost the turn; stays after the end, so that closing twice is one.
    _id("lease_token"),
    Column("lease_until", UtcTime, nullable=False),
    Column("heartbeat_time", UtcTime, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("create_time", UtcTime, nullable=False),
    Column("end_time", UtcTime, nullable=True),
    UniqueConstraint("user_id", "client_message_id", name="turns_client_message"),
    Index("turns_of_conversation", "user_id", "conversation_id"),
    Index("turns_by_lease", "state", "lease_until"),
    **TABLE_OPTIONS,
)

turn_events = Table(
    "turn_events",
    metadata,
    _id("turn_id", primary_key=True),
    # From 1 without gaps.
    Column("seq", Integer, primary_key=True, autoincrement=False),
    # A ChatEvent.
    Column("event", LongBytes, nullable=False),
    **TABLE_OPTIONS,
)

context_stats = Table(
    "context_stats",
    metadata,
    _id("user_id", primary_key=True),
    _id("conversation_id", primary_key=True),
    # A ContextReport.
    Column("last_report", LongBytes, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("total_tokens", BigInteger, nullable=False),
    Column("actual_prompt_tokens", BigInteger, nullable=False),
    Column("dropped", BigInteger, nullable=False),
    Column("truncated", BigInteger, nullable=False),
    **TABLE_OPTIONS,
)

learn_queues = Table(
    "learn_queues",
    metadata,
    # One row for each user that ever ended a turn; its row lock is the lock of the user's outbox.
    _id("user_id", primary_key=True),
    # When the oldest pending turn may be claimed, or its lease runs out. NULL: none is pending.
    Column("due_time", UtcTime, nullable=True),
    # Empty: nobody holds a turn.
    _id("lease_token"),
    Index("learn_queues_due", "due_time"),
    **TABLE_OPTIONS,
)

learn_outbox = Table(
    "learn_outbox",
    metadata,
    # Given under the lock of the user's queue: it rises as the ends of a user's turns are stored.
    Column("outbox_id", Serial, primary_key=True),
    _id("user_id"),
    _id("conversation_id"),
    _id("turn_id"),
    # Of IngestTurn: makes a second delivery harmless.
    _id("request_id"),
    # Of IngestTurn: [{role, content, create_time, timezone}], the answer only if there is one.
    # Empty once it is delivered.
    Column("messages", Json, nullable=False),
    # pending, done or parked.
    _word("state"),
    # Claims that were no outage.
    Column("attempt", Integer, nullable=False),
    Column("last_error", LongText, nullable=False),
    Column("create_time", UtcTime, nullable=False),
    UniqueConstraint("turn_id", name="learn_outbox_turn"),
    Index("learn_outbox_next", "user_id", "state", "outbox_id"),
    Index("learn_outbox_by_state", "state", "create_time"),
    **TABLE_OPTIONS,
)
