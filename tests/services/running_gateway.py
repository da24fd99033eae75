"""A gateway on loopback, by its own uvicorn, in front of scripted services."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from gateway.serving import bind, listen_address, serve
from gateway.settings import GatewaySettings
from rpc.server import StopSignals
from tests.services.scripted_agent import (
    Scripted,
    scripted_agent,
    scripted_memory,
    serving_scripted,
)
from tests.services.sse_reader import ServerSentEvent, read_events

PATIENCE = 20.0
"""Seconds after which a test that hangs fails; none takes that long."""


@dataclass(frozen=True)
class RunningGateway:
    url: str
    client: httpx.AsyncClient
    agent: Scripted
    memory: Scripted
    signals: StopSignals
    serving: asyncio.Task[None]

    async def chat(self, body: dict[str, Any] | None = None) -> list[ServerSentEvent]:
        """Give the events of a whole turn."""
        answer = await self.client.post("/api/v1/agent/chat", json=body or {"message": "hi"})
        assert answer.status_code == 200, answer.text
        return read_events(answer.content)


@asynccontextmanager
async def running_gateway(
    *, agent: Scripted | None = None, memory: Scripted | None = None, token: str = "", **knobs: Any
) -> AsyncIterator[RunningGateway]:
    """Run it until the end of the block; knobs are GatewaySettings, token is the services'."""
    agent, memory = agent or scripted_agent(), memory or scripted_memory()
    async with (
        serving_scripted(agent, token=token) as a,
        serving_scripted(memory, token=token) as m,
    ):
        tokens = {"agent_token": token, "memory_token": token}
        targets = {"agent_target": a.address, "memory_target": m.address}
        settings = GatewaySettings(
            **{"listen": "127.0.0.1:0", "shutdown_grace": 0.2, **targets, **tokens, **knobs}
        )
        async with running(settings, agent, memory) as gateway:
            yield gateway


@asynccontextmanager
async def running(
    settings: GatewaySettings, agent: Scripted, memory: Scripted
) -> AsyncIterator[RunningGateway]:
    listener = bind(listen_address(settings))
    host, port = listener.getsockname()[:2]
    signals = StopSignals()
    serving = asyncio.create_task(serve(settings, listener, signals))
    url = f"http://{host}:{port}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False) as client:
            yield RunningGateway(url, client, agent, memory, signals, serving)
    finally:
        signals.first.set()
        await serving
