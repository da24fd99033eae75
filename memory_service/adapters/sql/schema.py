"""The tables of the memory service; migrations make them, this is what statements are built on.

Column names are the words of the proto. An empty string means none, as in the domain.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    UniqueConstraint,
)

from database.types import TABLE_OPTIONS, Json, Key, LongBytes, LongText, Real, Serial, UtcTime

ID = 128
"""Most bytes of an id, ours or a caller's."""
WORD = 16
"""Most bytes of a type, a status or another word of an enum."""

metadata = MetaData()

memories = Table(
    "memories",
    metadata,
    Column("memory_id", Key(ID), primary_key=True),
    Column("user_id", Key(ID), nullable=False),
    Column("conversation_id", Key(ID), nullable=False),
    Column("assistant_id", Key(ID), nullable=False),
    Column("run_id", Key(ID), nullable=False),
    Column("memory_type", Key(WORD), nullable=False),
    Column("title", LongText, nullable=False),
    Column("content", LongText, nullable=False),
    Column("normalized_title", LongText, nullable=False),
    Column("normalized_content", LongText, nullable=False),
    Column("content_hash", Key(64), nullable=False),
    Column("confidence", Real, nullable=False),
    Column("importance", Real, nullable=False),
    Column("sensitivity_level", SmallInteger, nullable=False),
    Column("is_explicit", Boolean, nullable=False),
    Column("status", Key(WORD), nullable=False),
    Column("superseded_by", Key(ID), nullable=False),
    Column("expire_time", UtcTime),
    Column("metadata", Json, nullable=False),
    Column("turn_id", Key(ID), nullable=False),
    Column("event_ids", Json, nullable=False),
    Column("last_access_time", UtcTime),
    Column("create_time", UtcTime, nullable=False),
    Column("update_time", UtcTime, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("is_verbatim", Boolean, nullable=False),
    Column("speaker", LongText, nullable=False),
    Column("occur_time", UtcTime),
    # A domain.model.Role; empty: unknown.
    Column("role", Key(WORD), nullable=False, server_default=""),
    Column("index_state", Key(WORD), nullable=False),
    # What the index was last told, and when.
    Column("index_version", BigInteger),
    Column("index_time", UtcTime),
    # domain.text.active_key. NULLs are distinct on every database, so only active rows exclude
    # each other.
    Column("active_key", Key(64)),
    # When it was marked deleted; NULL in any other status. A column of its own: with an index of
    # status and update_time SQLite would no longer read pinned rows in their order.
    Column("delete_time", UtcTime),
    UniqueConstraint(
        "user_id", "assistant_id", "run_id", "memory_type", "active_key", name="uq_memories_active"
    ),
    # Each is read backwards: pinned rows of a type; the best rows; changes; pages of a list.
    Index(
        "ix_memories_pinned",
        "user_id",
        "status",
        "memory_type",
        "importance",
        "update_time",
        "memory_id",
    ),
    Index(
        "ix_memories_best",
        "user_id",
        "status",
        "is_explicit",
        "importance",
        "update_time",
        "memory_id",
    ),
    Index("ix_memories_revision", "user_id", "revision"),
    Index("ix_memories_page", "user_id", "memory_id"),
    # Of all users: what has expired, and what was deleted long ago.
    Index("ix_memories_expiry", "status", "expire_time"),
    Index("ix_memories_deleted", "delete_time"),
    **TABLE_OPTIONS,
)

memory_user_states = Table(
    "memory_user_states",
    metadata,
    Column("user_id", Key(ID), primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("memory_enabled", Boolean, nullable=False),
    Column("implicit_memory_enabled", Boolean, nullable=False),
    Column("sensitive_memory_enabled", Boolean, nullable=False),
    Column("disabled_types", Json, nullable=False),
    # Microseconds; NULL is no limit.
    Column("retention", BigInteger),
    Column("verbatim_turns_enabled", Boolean, nullable=False),
    Column("erase_time", UtcTime),
    Column("erase_revision", BigInteger, nullable=False),
    # When the user's next job may be claimed; NULL: none is unfinished. See job_rows.plan.
    Column("next_job_time", UtcTime),
    Index("ix_memory_user_states_next_job", "next_job_time"),
    # Of the last purge: rows are gone that changes since an earlier revision do not name.
    Column("purge_revision", BigInteger, nullable=False, server_default="0"),
    # The request_id of an EraseUser that has begun and not ended; empty: none.
    Column("erasing", Key(ID), nullable=False, server_default=""),
    Index("ix_memory_user_states_retention", "retention"),
    Index("ix_memory_user_states_erasing", "erasing"),
    **TABLE_OPTIONS,
)

memory_history = Table(
    "memory_history",
    metadata,
    Column("history_id", Serial, primary_key=True, autoincrement=True),
    Column("user_id", Key(ID), nullable=False),
    Column("memory_id", Key(ID), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("operation", Key(WORD), nullable=False),
    Column("actor", Key(ID), nullable=False),
    Column("reason", LongText, nullable=False),
    # NULL: a new memory; both NULL: their words were removed.
    Column("before", Json),
    Column("after", Json),
    # NULL: made by hand.
    Column("decision", Json),
    Column("create_time", UtcTime, nullable=False),
    Index("ix_memory_history_memory", "user_id", "memory_id", "history_id"),
    Index("ix_memory_history_revision", "user_id", "revision", "history_id"),
    **TABLE_OPTIONS,
)

memory_requests = Table(
    "memory_requests",
    metadata,
    Column("user_id", Key(ID), primary_key=True),
    Column("request_id", Key(ID), primary_key=True),
    Column("rpc", Key(64), nullable=False),
    Column("digest", LongBytes, nullable=False),
    Column("answer", LongBytes, nullable=False),
    Column("create_time", UtcTime, nullable=False),
    Index("ix_memory_requests_create_time", "create_time"),
    **TABLE_OPTIONS,
)

memory_jobs = Table(
    "memory_jobs",
    metadata,
    Column("job_id", Key(ID), primary_key=True),
    Column("user_id", Key(ID), nullable=False),
    # The user's revision that stored it: orders the user's jobs.
    Column("seq", BigInteger, nullable=False),
    Column("request_id", Key(ID), nullable=False),
    Column("conversation_id", Key(ID), nullable=False),
    Column("turn_id", Key(ID), nullable=False),
    # A domain.ingest.Turn.
    Column("turn", Json, nullable=False),
    # A domain.ingest.JobState.
    Column("state", Key(WORD), nullable=False),
    Column("attempt", Integer, nullable=False),
    # Outages in a row; an attempt that failed by itself ends them.
    Column("outages", Integer, nullable=False),
    # When it may be claimed: the end of a lease, or of a pause.
    Column("due_time", UtcTime, nullable=False),
    # Of the last claim, also when its lease is over; empty: never claimed.
    Column("token", Key(ID), nullable=False),
    Column("last_error", LongText, nullable=False),
    # A domain.ingest.IngestOutcome; NULL until done.
    Column("outcome", Json),
    Column("create_time", UtcTime, nullable=False),
    UniqueConstraint("user_id", "request_id", name="uq_memory_jobs_request"),
    # What waits, of all users; a user's next job; pages of a list, read backwards.
    Index("ix_memory_jobs_state", "state", "create_time"),
    Index("ix_memory_jobs_next", "user_id", "state", "seq"),
    Index("ix_memory_jobs_page", "user_id", "seq"),
    **TABLE_OPTIONS,
)

memory_embeddings = Table(
    "memory_embeddings",
    metadata,
    Column("memory_id", Key(ID), primary_key=True),
    Column("fingerprint", Key(64), primary_key=True),
    # See vectors.py for its bytes.
    Column("vector", LongBytes, nullable=False),
    **TABLE_OPTIONS,
)

memory_index_outbox = Table(
    "memory_index_outbox",
    metadata,
    # One note per memory, however often it changes before the index is told.
    Column("memory_id", Key(ID), primary_key=True),
    Column("user_id", Key(ID), nullable=False),
    # waiting, told, failed: see outbox.py.
    Column("state", Key(WORD), nullable=False),
    # Raised by each change of the memory; claimed_mark is what it was when the lease was taken.
    Column("mark", BigInteger, nullable=False),
    Column("claimed_mark", BigInteger, nullable=False),
    # Whose lease it is; empty: nobody's.
    Column("token", Key(ID), nullable=False),
    # When it may be claimed: the end of a lease, or of a pause after a failure.
    Column("due_time", UtcTime, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("told_time", UtcTime),
    Column("last_error", LongText, nullable=False),
    Index("ix_memory_index_outbox_due", "state", "due_time", "memory_id"),
    Index("ix_memory_index_outbox_user", "user_id"),
    **TABLE_OPTIONS,
)

memory_index_collections = Table(
    "memory_index_collections",
    metadata,
    Column("collection", Key(255), primary_key=True),
    Column("ready_time", UtcTime, nullable=False),
    **TABLE_OPTIONS,
)
