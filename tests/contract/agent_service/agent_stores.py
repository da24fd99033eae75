"""The stores that pass the contract suite, each with a way to see what its outbox holds."""

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from sqlalchemy import Connection, Engine, delete, select

from agent_service.adapters.sql.conversations import SqlConversationStore
from agent_service.adapters.sql.learn_rows import to_turn
from agent_service.adapters.sql.outbox import SqlLearnOutbox
from agent_service.adapters.sql.schema import learn_outbox, metadata
from agent_service.adapters.sql.turns import SqlTurnStore
from agent_service.ports import ConversationStore, LearnOutbox, ParkedTurns, TurnStore
from database.access import Database
from tests.fakes.agent_store import FakeAgentStore
from tests.fakes.learn_outbox import Learning, learning_of

LEASE = timedelta(seconds=10)


class Outbox(LearnOutbox, ParkedTurns, Protocol):
    """Both sides of it."""


@dataclass(frozen=True)
class Stores:
    turns: TurnStore
    conversations: ConversationStore
    learnings: Callable[[], Awaitable[list[Learning]]]
    outbox: Outbox


def ids(prefix: str = "id") -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def fake_stores() -> Stores:
    store = FakeAgentStore(ids(), lease=LEASE)

    async def learnings() -> list[Learning]:
        return store.outbox.learnings

    return Stores(store, store, learnings, store.outbox)


def sql_stores(database: Database) -> Stores:
    def read(connection: Connection) -> list[Learning]:
        wanted = select(learn_outbox).order_by(learn_outbox.c.outbox_id)
        return [learning_of(to_turn(row)) for row in connection.execute(wanted)]

    async def learnings() -> list[Learning]:
        return await database.read(read)

    turns = SqlTurnStore(database, ids(), owner="test", lease=LEASE)
    conversations = SqlConversationStore(database)
    return Stores(turns, conversations, learnings, SqlLearnOutbox(database, ids("lease")))


def empty(engine: Engine) -> None:
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(delete(table))
