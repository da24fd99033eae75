"""Opening the service: all parts, the relay among them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from sqlalchemy import text

from agent_service.adapters.memory_client import MemoryClient
from agent_service.adapters.sql.conversations import SqlConversationStore
from agent_service.adapters.sql.migrate import MIGRATIONS
from agent_service.adapters.sql.outbox import SqlLearnOutbox
from agent_service.adapters.sql.turns import SqlTurnStore
from agent_service.adapters.tokens_toktok import default_counter
from agent_service.app.parts import (
    make_model,
    open_database,
    open_memory_channel,
    owner,
    reply_settings,
    turn_settings,
)
from agent_service.app.relaying import Relaying
from agent_service.chat import ChatTurns, Reply, close_lost_turns
from agent_service.codec.timelines import timeline_bytes
from agent_service.conversations import Conversations
from agent_service.handlers.failures import DOMAIN, failure_of
from agent_service.handlers.service import AgentHandlers
from agent_service.ports import Clock, NewId
from agent_service.settings import AgentSettings
from agent_service.v1 import agent_pb2, agent_pb2_grpc
from database.access import Database
from rpc.ids import new_id, utc_now
from rpc.server import Service

LAST_WRITES = 2.0
"""Seconds after the grace in which the last turns may still be stored."""


class AgentApp:
    """The agent service, opened by open_app; closed with it.

    relaying delivers what shall be learnt while it is running; the RPCs do not need it.
    """

    def __init__(
        self,
        database: Database,
        turns: ChatTurns,
        conversations: Conversations,
        relaying: Relaying,
    ) -> None:
        self.turns = turns
        self.relaying = relaying
        self.service = Service(
            name=agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name,
            add=agent_pb2_grpc.add_AgentServiceServicer_to_server,
            servicer=AgentHandlers(turns, conversations),
            failure_of=failure_of,
            domain=DOMAIN,
        )
        self._database = database
        self._migrated = False

    async def ready(self) -> bool:
        """Tell whether SQL answers with the current schema.

        A schema that was current once counts as current. Memory and the model do not count: a turn
        goes on without the one and says so without the other. Raises what SQL raises.
        """
        await self._database.read(lambda connection: connection.execute(text("SELECT 1")).one())
        if not self._migrated:
            self._migrated = await asyncio.to_thread(MIGRATIONS.is_current, self._database.engine)
        return self._migrated


@asynccontextmanager
async def open_app(
    settings: AgentSettings, *, clock: Clock = utc_now, new_id: NewId = new_id
) -> AsyncIterator[AgentApp]:
    """Open the service's parts; nothing is served yet. Waits for no other server.

    Raises ValueError for addresses that are none, OSError if the instructions cannot be read.
    """
    async with AsyncExitStack() as closing:
        database = open_database(settings)
        closing.callback(database.close)
        channel = open_memory_channel(settings)
        closing.push_async_callback(channel.close)
        memory = MemoryClient(channel, cut=settings.memory_cut)
        relaying = Relaying(SqlLearnOutbox(database, new_id), memory, settings, clock)
        turn_store = SqlTurnStore(
            database,
            new_id,
            owner=owner(),
            lease=timedelta(seconds=settings.lease),
            on_end=relaying.notify,
        )
        conversation_store = SqlConversationStore(database)
        counter = default_counter(settings.llm_model)
        await asyncio.to_thread(counter.count_many, ["-"])  # loads what no turn should wait for
        model = make_model(settings, counter)
        closing.push_async_callback(model.close)
        reply = Reply(conversation_store, memory, model, counter, reply_settings(settings))
        turns = ChatTurns(
            turn_store, conversation_store, reply, turn_settings(settings), clock, new_id
        )
        closing.push_async_callback(turns.settle, within=LAST_WRITES)
        sweep = asyncio.create_task(
            close_lost_turns(
                turn_store,
                clock,
                interval=settings.sweep_interval,
                retention=timedelta(seconds=settings.event_retention),
            )
        )
        closing.push_async_callback(_cancelled, sweep)
        conversations = Conversations(conversation_store, timeline_bytes)
        yield AgentApp(database, turns, conversations, relaying)


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
