"""The composition root: the only place that constructs what the service is made of."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import text

from agent_service.adapters.memory_client import MemoryClient
from agent_service.adapters.model_offline import OfflineModel
from agent_service.adapters.sql.conversations import SqlConversationStore
from agent_service.adapters.sql.migrate import MIGRATIONS
from agent_service.adapters.sql.turns import SqlTurnStore
from agent_service.adapters.tokens_toktok import default_counter
from agent_service.chat import (
    ChatTurns,
    Pace,
    Reply,
    ReplySettings,
    TurnSettings,
    close_lost_turns,
)
from agent_service.codec.timelines import timeline_bytes
from agent_service.conversations import Conversations
from agent_service.domain.chat_context import Shares
from agent_service.domain.components import Budget
from agent_service.domain.errors import StoreUnavailable
from agent_service.domain.render import RenderMode
from agent_service.domain.tokens import TokenCounter
from agent_service.handlers.failures import DOMAIN, failure_of
from agent_service.handlers.service import AgentHandlers
from agent_service.ports import Clock, NewId
from agent_service.settings import AgentSettings
from agent_service.v1 import agent_pb2, agent_pb2_grpc
from database.access import Database
from database.engine import open_engine
from rpc.channel import open_channel
from rpc.ids import new_id, utc_now
from rpc.server import ServerSettings, Service

if TYPE_CHECKING:
    from agent_service.adapters.model_openai import OpenAIModel


LAST_WRITES = 2.0
"""Seconds after the grace in which the last turns may still be stored."""


class AgentApp:
    """The agent service, opened by open_app; closed with it."""

    def __init__(self, database: Database, turns: ChatTurns, conversations: Conversations) -> None:
        self.turns = turns
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
        turn_store = SqlTurnStore(
            database, new_id, owner=_owner(), lease=timedelta(seconds=settings.lease)
        )
        conversation_store = SqlConversationStore(database)
        channel = open_channel(
            settings.memory_target, service_token=settings.memory_token.get_secret_value()
        )
        closing.push_async_callback(channel.close)
        counter = default_counter(settings.llm_model)
        await asyncio.to_thread(counter.count_many, ["-"])  # loads what no turn should wait for
        model = make_model(settings, counter)
        closing.push_async_callback(model.close)
        reply = Reply(
            conversation_store,
            MemoryClient(channel, cut=settings.memory_cut),
            model,
            counter,
            _reply_settings(settings),
        )
        turns = ChatTurns(
            turn_store, conversation_store, reply, _turn_settings(settings), clock, new_id
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
        yield AgentApp(database, turns, Conversations(conversation_store, timeline_bytes))


def open_database(settings: AgentSettings) -> Database:
    """Give the service's SQL; connects at first use."""
    engine = open_engine(
        settings.sqlalchemy_url,
        pool_size=settings.database_pool,
        connect_timeout=settings.database_connect_timeout,
        lock_timeout=settings.database_lock_timeout,
        statement_timeout=settings.database_statement_timeout,
    )
    return Database(engine, unavailable=StoreUnavailable, threads=settings.database_pool)


def migrate(settings: AgentSettings) -> str:
    """Bring the database to the current schema and give its version."""
    MIGRATIONS.upgrade(settings.sqlalchemy_url)
    return MIGRATIONS.head or ""


def make_model(settings: AgentSettings, counter: TokenCounter) -> "OfflineModel | OpenAIModel":
    """Give the model of the settings; without one the stand-in that says so."""
    if not settings.llm_model and not settings.llm_base_url:
        return OfflineModel(counter)
    from agent_service.adapters.model_openai import (  # noqa: PLC0415 — takes seconds to import
        ModelEndpoint,
        OpenAIModel,
        ThinkingForm,
    )

    return OpenAIModel(
        ModelEndpoint(
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key.get_secret_value(),
            model=settings.llm_model,
            thinking=settings.llm_thinking,
            thinking_form=ThinkingForm(form) if (form := settings.llm_thinking_form) else None,
            max_output_tokens=settings.llm_max_output_tokens,
            first_timeout=settings.llm_first_timeout,
            idle_timeout=settings.llm_idle_timeout,
        )
    )


def server_settings(
    settings: AgentSettings, *, listen: str = "", shared: bool = False
) -> ServerSettings:
    """Say how to listen; shared: with other processes, on the address that the parent holds."""
    return ServerSettings(
        listen=listen or settings.listen,
        service_token=settings.service_token.get_secret_value(),
        grace=settings.shutdown_grace,
        reuse_port=shared,
    )


def _reply_settings(settings: AgentSettings) -> ReplySettings:
    return ReplySettings(
        instructions=settings.instructions(),
        budget=Budget(
            window=settings.context_window,
            reserve_output=settings.reserved_output,
            safety=settings.context_safety,
        ),
        shares=Shares(truncation_step=settings.context_truncation_step),
        render_mode=RenderMode(settings.inject_render_mode),
        recent_messages=settings.recent_messages,
        recall_timeout=settings.recall_timeout,
    )


def _turn_settings(settings: AgentSettings) -> TurnSettings:
    return TurnSettings(
        pace=Pace(heartbeat=settings.heartbeat, event_batch=settings.event_batch),
        busy_wait=settings.busy_wait,
        resume_grace=settings.resume_grace,
        resume_poll=settings.resume_poll,
        title_characters=settings.title_characters,
    )


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
