"""Learning: jobs, and why each change was made."""

import sqlalchemy as sa
from alembic import op

from database.migrate import add_index
from database.types import TABLE_OPTIONS, Json, Key, LongText, UtcTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "memory_jobs",
        sa.Column("job_id", Key(128), primary_key=True),
        sa.Column("user_id", Key(128), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("request_id", Key(128), nullable=False),
        sa.Column("conversation_id", Key(128), nullable=False),
        sa.Column("turn_id", Key(128), nullable=False),
        sa.Column("turn", Json(), nullable=False),
        sa.Column("state", Key(16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("outages", sa.Integer(), nullable=False),
        sa.Column("due_time", UtcTime(), nullable=False),
        sa.Column("token", Key(128), nullable=False),
        sa.Column("last_error", LongText, nullable=False),
        sa.Column("outcome", Json()),
        sa.Column("create_time", UtcTime(), nullable=False),
        sa.UniqueConstraint("user_id", "request_id", name="uq_memory_jobs_request"),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    add_index("ix_memory_jobs_state", "memory_jobs", ["state", "create_time"])
    add_index("ix_memory_jobs_next", "memory_jobs", ["user_id", "state", "seq"])
    add_index("ix_memory_jobs_page", "memory_jobs", ["user_id", "seq"])
    if not _has("memory_user_states", "next_job_time"):
        op.add_column("memory_user_states", sa.Column("next_job_time", UtcTime()))
    add_index("ix_memory_user_states_next_job", "memory_user_states", ["next_job_time"])
    if not _has("memory_history", "decision"):
        op.add_column("memory_history", sa.Column("decision", Json()))


def downgrade() -> None:
    """Take them away."""
    if _has("memory_history", "decision"):
        with op.batch_alter_table("memory_history") as history:
            history.drop_column("decision")
    if sa.inspect(op.get_bind()).has_index("memory_user_states", "ix_memory_user_states_next_job"):
        op.drop_index("ix_memory_user_states_next_job", "memory_user_states")
    if _has("memory_user_states", "next_job_time"):
        with op.batch_alter_table("memory_user_states") as states:
            states.drop_column("next_job_time")
    op.drop_table("memory_jobs", if_exists=True)


def _has(table: str, name: str) -> bool:
    columns = sa.inspect(op.get_bind()).get_columns(table)
    return any(column["name"] == name for column in columns)
