"""The parts that the settings ask for."""

import os
import socket
from typing import TYPE_CHECKING

import grpc

from agent_service.adapters.model_offline import OfflineModel
from agent_service.adapters.sql.migrate import MIGRATIONS
from agent_service.chat import Pace, ReplySettings, TurnSettings
from agent_service.domain.chat_context import Shares
from agent_service.domain.components import Budget
from agent_service.domain.errors import StoreUnavailable
from agent_service.domain.render import RenderMode
from agent_service.domain.tokens import TokenCounter
from agent_service.handlers.failures import failed_turn
from agent_service.outbox import RelaySettings
from agent_service.settings import AgentSettings
from database.access import Database
from database.engine import open_engine
from rpc.channel import open_channel
from rpc.server import ServerSettings

if TYPE_CHECKING:
    from agent_service.adapters.model_openai import OpenAIModel


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


def open_memory_channel(settings: AgentSettings) -> grpc.aio.Channel:
    """Give a channel to the memory service. Raises ValueError for an address that is none."""
    return open_channel(
        settings.memory_target, service_token=settings.memory_token.get_secret_value()
    )


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


def reply_settings(settings: AgentSettings) -> ReplySettings:
    """Say how to answer. Raises OSError if the instructions cannot be read."""
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


def turn_settings(settings: AgentSettings) -> TurnSettings:
    """Say how turns run."""
    return TurnSettings(
        pace=Pace(heartbeat=settings.heartbeat, event_batch=settings.event_batch),
        explain=failed_turn,
        busy_wait=settings.busy_wait,
        resume_grace=settings.resume_grace,
        resume_poll=settings.resume_poll,
        title_characters=settings.title_characters,
    )


def relay_settings(settings: AgentSettings) -> RelaySettings:
    """Say how turns are delivered."""
    return RelaySettings(
        poll=settings.relay_poll,
        lease=settings.relay_lease,
        max_tries=settings.relay_max_tries,
    )


def owner() -> str:
    """Name this process for people."""
    return f"{socket.gethostname()}:{os.getpid()}"
