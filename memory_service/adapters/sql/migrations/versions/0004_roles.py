"""Verbatim turns: who spoke."""

import sqlalchemy as sa
from alembic import op

from database.types import Key

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the column; of older rows it is not known."""
    if not _has_role():
        op.add_column("memories", sa.Column("role", Key(16), nullable=False, server_default=""))


def downgrade() -> None:
    """Take it away."""
    if _has_role():
        with op.batch_alter_table("memories") as memories:
            memories.drop_column("role")


def _has_role() -> bool:
    columns = sa.inspect(op.get_bind()).get_columns("memories")
    return any(column["name"] == "role" for column in columns)
