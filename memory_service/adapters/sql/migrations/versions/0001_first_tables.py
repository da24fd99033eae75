"""The first tables: memories, users, history, requests, embeddings, and the index's notes."""

import sqlalchemy as sa
from alembic import op

from database.migrate import add_index
from database.types import TABLE_OPTIONS, Json, Key, LongBytes, LongText, Real, Serial, UtcTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "memories",
        sa.Column("memory_id", Key(128), primary_key=True),
        sa.Column("user_id", Key(128), nullable=False),
        sa.Column("conversation_id", Key(128), nullable=False),
        sa.Column("assistant_id", Key(128), nullable=False),
        sa.Column("run_id", Key(128), nullable=False),
        sa.Column("memory_type", Key(16), nullable=False),
        sa.Column("title", LongText, nullable=False),
        sa.Column("content", LongText, nullable=False),
        sa.Column("normalized_title", LongText, nullable=False),
        sa.Column("normalized_content", LongText, nullable=False),
        sa.Column("content_hash", Key(64), nullable=False),
        sa.Column("confidence", Real(), nullable=False),
        sa.Column("importance", Real(), nullable=False),
        sa.Column("sensitivity_level", sa.SmallInteger(), nullable=False),
        sa.Column("is_explicit", sa.Boolean(), nullable=False),
        sa.Column("status", Key(16), nullable=False),
        sa.Column("superseded_by", Key(128), nullable=False),
        sa.Column("expire_time", UtcTime()),
        sa.Column("metadata", Json(), nullable=False),
        sa.Column("turn_id", Key(128), nullable=False),
        sa.Column("event_ids", Json(), nullable=False),
        sa.Column("last_access_time", UtcTime()),
        sa.Column("create_time", UtcTime(), nullable=False),
        sa.Column("update_time", UtcTime(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("is_verbatim", sa.Boolean(), nullable=False),
        sa.Column("speaker", LongText, nullable=False),
        sa.Column("occur_time", UtcTime()),
        sa.Column("index_state", Key(16), nullable=False),
        sa.Column("index_version", sa.BigInteger()),
        sa.Column("index_time", UtcTime()),
        sa.Column("active_key", Key(64)),
        sa.UniqueConstraint(
            "user_id",
            "assistant_id",
            "run_id",
            "memory_type",
            "active_key",
            name="uq_memories_active",
        ),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    add_index(
        "ix_memories_best",
        "memories",
        ["user_id", "status", "is_explicit", "importance", "update_time", "memory_id"],
    )
    add_index("ix_memories_page", "memories", ["user_id", "memory_id"])
    add_index(
        "ix_memories_pinned",
        "memories",
        ["user_id", "status", "memory_type", "importance", "update_time", "memory_id"],
    )
    add_index("ix_memories_revision", "memories", ["user_id", "revision"])
    op.create_table(
        "memory_embeddings",
        sa.Column("memory_id", Key(128), primary_key=True),
        sa.Column("fingerprint", Key(64), primary_key=True),
        sa.Column("vector", LongBytes, nullable=False),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    op.create_table(
        "memory_history",
        sa.Column("history_id", Serial, primary_key=True, autoincrement=True),
        sa.Column("user_id", Key(128), nullable=False),
        sa.Column("memory_id", Key(128), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("operation", Key(16), nullable=False),
        sa.Column("actor", Key(128), nullable=False),
        sa.Column("reason", LongText, nullable=False),
        sa.Column("before", Json()),
        sa.Column("after", Json()),
        sa.Column("create_time", UtcTime(), nullable=False),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    add_index("ix_memory_history_memory", "memory_history", ["user_id", "memory_id", "history_id"])
    add_index("ix_memory_history_revision", "memory_history", ["user_id", "revision", "history_id"])
    op.create_table(
        "memory_index_collections",
        sa.Column("collection", Key(255), primary_key=True),
        sa.Column("ready_time", UtcTime(), nullable=False),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    op.create_table(
        "memory_index_outbox",
        sa.Column("memory_id", Key(128), primary_key=True),
        sa.Column("user_id", Key(128), nullable=False),
        sa.Column("state", Key(16), nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.Column("claimed_mark", sa.BigInteger(), nullable=False),
        sa.Column("token", Key(128), nullable=False),
        sa.Column("due_time", UtcTime(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("told_time", UtcTime()),
        sa.Column("last_error", LongText, nullable=False),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    add_index(
        "ix_memory_index_outbox_due", "memory_index_outbox", ["state", "due_time", "memory_id"]
    )
    add_index("ix_memory_index_outbox_user", "memory_index_outbox", ["user_id"])
    op.create_table(
        "memory_requests",
        sa.Column("user_id", Key(128), primary_key=True),
        sa.Column("request_id", Key(128), primary_key=True),
        sa.Column("rpc", Key(64), nullable=False),
        sa.Column("digest", LongBytes, nullable=False),
        sa.Column("answer", LongBytes, nullable=False),
        sa.Column("create_time", UtcTime(), nullable=False),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    add_index("ix_memory_requests_create_time", "memory_requests", ["create_time"])
    op.create_table(
        "memory_user_states",
        sa.Column("user_id", Key(128), primary_key=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("memory_enabled", sa.Boolean(), nullable=False),
        sa.Column("implicit_memory_enabled", sa.Boolean(), nullable=False),
        sa.Column("sensitive_memory_enabled", sa.Boolean(), nullable=False),
        sa.Column("disabled_types", Json(), nullable=False),
        sa.Column("retention", sa.BigInteger()),
        sa.Column("verbatim_turns_enabled", sa.Boolean(), nullable=False),
        sa.Column("erase_time", UtcTime()),
        sa.Column("erase_revision", sa.BigInteger(), nullable=False),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("memory_user_states", if_exists=True)
    op.drop_table("memory_requests", if_exists=True)
    op.drop_table("memory_index_outbox", if_exists=True)
    op.drop_table("memory_index_collections", if_exists=True)
    op.drop_table("memory_history", if_exists=True)
    op.drop_table("memory_embeddings", if_exists=True)
    op.drop_table("memories", if_exists=True)
