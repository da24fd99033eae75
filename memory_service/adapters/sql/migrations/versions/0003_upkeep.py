"""Upkeep: marks of what was removed for good, and the indexes that sweeps read."""

import sqlalchemy as sa
from alembic import op

from database.migrate import add_index
from database.types import Key, UtcTime

revision = "0003"
down_revision = "0002"

_COLUMNS = (
    ("memory_user_states", "erasing"),
    ("memory_user_states", "purge_revision"),
    ("memories", "delete_time"),
)
_INDEXES = (
    ("ix_memories_expiry", "memories", ["status", "expire_time"]),
    ("ix_memories_deleted", "memories", ["delete_time"]),
    ("ix_memory_user_states_retention", "memory_user_states", ["retention"]),
    ("ix_memory_user_states_erasing", "memory_user_states", ["erasing"]),
)


def upgrade() -> None:
    """Make them."""
    if not _has("memories", "delete_time"):
        op.add_column("memories", sa.Column("delete_time", UtcTime()))
    op.execute("UPDATE memories SET delete_time = update_time WHERE status = 'deleted'")
    if not _has("memory_user_states", "purge_revision"):
        op.add_column(
            "memory_user_states",
            sa.Column("purge_revision", sa.BigInteger(), nullable=False, server_default="0"),
        )
    if not _has("memory_user_states", "erasing"):
        op.add_column(
            "memory_user_states", sa.Column("erasing", Key(128), nullable=False, server_default="")
        )
    for name, table, columns in _INDEXES:
        add_index(name, table, columns)


def downgrade() -> None:
    """Take them away."""
    inspector = sa.inspect(op.get_bind())
    for name, table, _ in _INDEXES:
        if inspector.has_index(table, name):
            op.drop_index(name, table)
    for table, column in _COLUMNS:
        if _has(table, column):
            with op.batch_alter_table(table) as altered:
                altered.drop_column(column)


def _has(table: str, name: str) -> bool:
    columns = sa.inspect(op.get_bind()).get_columns(table)
    return any(column["name"] == name for column in columns)
