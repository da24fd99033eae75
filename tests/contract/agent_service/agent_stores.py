"""The stores that pass the contract suite, each with a way to see what its outbox holds."""

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row, delete, select

from agent_service.adapters.sql.conversations import SqlConversationStore
from agent_service.adapters.sql.schema import learn_outbox, metadata
from agent_service.adapters.sql.turns import SqlTurnStore
from agent_service.ports import ConversationStore, TurnStore
from database.access import Database
from tests.fakes.agent_store import FakeAgentStore, Learning

LEASE = timedelta(seconds=10)


@dataclass(frozen=True)
class Stores:
    turns: TurnStore
    conversations: ConversationStore
    learnings: Callable[[], Awaitable[list[Learning]]]


def ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"id-{next(numbers)}"


def fake_stores() -> Stores:
    store = FakeAgentStore(ids(), lease=LEASE)

    async def learnings() -> list[Learning]:
        return store.learnings

    return Stores(store, store, learnings)


def sql_stores(database: Database) -> Stores:
    def read(connection: Connection) -> list[Learning]:
        wanted = select(learn_outbox).order_by(learn_outbox.c.outbox_id)
        return [_learning(row) for row in connection.execute(wanted)]

    async def learnings() -> list[Learning]:
        return await database.read(read)

    turns = SqlTurnStore(database, ids(), owner="test", lease=LEASE)
    return Stores(turns, SqlConversationStore(database), learnings)


def empty(engine: Engine) -> None:
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(delete(table))


def _learning(row: Row[Any]) -> Learning:
    said = {message["role"]: message for message in row.messages}
    return Learning(
        user_id=row.user_id,
        conversation_id=row.conversation_id,
        turn_id=row.turn_id,
        message=said["user"]["content"],
        answer=said["assistant"]["content"] if "assistant" in said else "",
        timezone=said["user"]["timezone"],
    )
