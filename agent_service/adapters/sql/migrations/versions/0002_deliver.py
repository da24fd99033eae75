"""Delivering what shall be learnt: a queue for each user, which is what a relay leases."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from database.migrate import add_index
from database.types import TABLE_OPTIONS, Key, UtcTime

revision = "0002"
down_revision = "0001"

_OUTBOX = sa.table(
    "learn_outbox",
    sa.column("user_id", Key(128)),
    sa.column("state", Key(32)),
    sa.column("create_time", UtcTime),
)
_QUEUES = sa.table(
    "learn_queues",
    sa.column("user_id", Key(128)),
    sa.column("due_time", UtcTime),
    sa.column("lease_token", Key(128)),
)
_LEASE = ("next_attempt_time", "lease_token", "lease_until")


def upgrade() -> None:
    """Make the queues of those who wait, and take the leases from the turns."""
    op.create_table(
        "learn_queues",
        sa.Column("user_id", Key(128), primary_key=True),
        sa.Column("due_time", UtcTime, nullable=True),
        sa.Column("lease_token", Key(128), nullable=False),
        if_not_exists=True,
        **TABLE_OPTIONS,
    )
    add_index("learn_queues_due", "learn_queues", ["due_time"])
    add_index("learn_outbox_next", "learn_outbox", ["user_id", "state", "outbox_id"])
    add_index("learn_outbox_by_state", "learn_outbox", ["state", "create_time"])
    _queue_those_who_wait()
    _drop_index("learn_outbox_due")
    _drop_index("learn_outbox_of_user")
    for name in _LEASE:
        if _has(name):
            op.drop_column("learn_outbox", name)


def downgrade() -> None:
    """Give the turns the columns of their leases back, empty: nobody read them."""
    columns: tuple[sa.Column[Any], ...] = (
        sa.Column("next_attempt_time", UtcTime),
        sa.Column("lease_token", Key(128)),
        sa.Column("lease_until", UtcTime),
    )
    for column in columns:
        if not _has(column.name):
            op.add_column("learn_outbox", column)
    add_index("learn_outbox_due", "learn_outbox", ["state", "next_attempt_time"])
    add_index("learn_outbox_of_user", "learn_outbox", ["user_id", "outbox_id"])
    for name in ("learn_outbox_next", "learn_outbox_by_state"):
        _drop_index(name)
    op.drop_table("learn_queues", if_exists=True)


def _queue_those_who_wait() -> None:
    there = sa.select(_QUEUES.c.user_id)
    waiting = (
        sa.select(_OUTBOX.c.user_id, sa.func.min(_OUTBOX.c.create_time), sa.literal("", Key(128)))
        .where(_OUTBOX.c.state == "pending", _OUTBOX.c.user_id.not_in(there))
        .group_by(_OUTBOX.c.user_id)
    )
    op.execute(_QUEUES.insert().from_select(["user_id", "due_time", "lease_token"], waiting))


def _drop_index(name: str) -> None:
    if sa.inspect(op.get_bind()).has_index("learn_outbox", name):
        op.drop_index(name, "learn_outbox")


def _has(name: str) -> bool:
    columns = sa.inspect(op.get_bind()).get_columns("learn_outbox")
    return any(column["name"] == name for column in columns)
