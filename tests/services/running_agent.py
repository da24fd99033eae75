"""The agent service in this process, over gRPC, with a scripted model and a scripted memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
from sqlalchemy import Connection, select

from agent_service.adapters.sql.schema import learn_outbox
from agent_service.app import AgentApp, migrate, open_app, server_settings
from agent_service.ports import Clock
from agent_service.settings import AgentSettings
from agent_service.v1 import agent_pb2 as pb
from agent_service.v1 import agent_pb2_grpc
from gateway.serving import bind, listen_address, serve
from gateway.settings import GatewaySettings
from memory_service.v1 import memory_pb2 as memory_pb
from rpc.channel import open_channel
from rpc.ids import utc_now
from rpc.server import StopSignals, start
from tests.services.openai_server import OpenAIServer
from tests.services.scripted_agent import Scripted

_numbers = count()


@dataclass(frozen=True)
class AgentServer:
    """A running service: call it by stub, look into it by app."""

    app: AgentApp
    stub: Any
    address: str
    model: OpenAIServer
    memory: Scripted
    settings: AgentSettings

    def call(self, message: str = "Hello there", *, timeout: float | None = None, **of: Any) -> Any:
        """Begin a turn of ann in c1, unless the fields say otherwise."""
        wanted = {
            "user_id": "ann",
            "conversation_id": "c1",
            "client_message_id": f"m{next(_numbers)}",
            "message": message,
        }
        return self.stub.Chat(pb.ChatRequest(**wanted | of), timeout=timeout)

    async def chat(self, message: str = "Hello there", **of: Any) -> list[pb.ChatEvent]:
        return [answer.event async for answer in self.call(message, **of)]

    async def timeline(
        self, user_id: str = "ann", conversation_id: str = "c1"
    ) -> list[pb.TimelineEvent]:
        request = pb.GetConversationTimelineRequest(
            user_id=user_id, conversation_id=conversation_id, page_size=200
        )
        return list((await self.stub.GetConversationTimeline(request)).events)

    async def stats(self, user_id: str = "ann", conversation_id: str = "c1") -> Any:
        key = {"user_id": user_id, "conversation_id": conversation_id}
        return await self.stub.GetContextStats(pb.GetContextStatsRequest(**key))

    async def to_learn(self) -> int:
        """Count the turns that wait to be learnt from."""
        waiting = select(learn_outbox).where(learn_outbox.c.state == "pending")

        def read(connection: Connection) -> int:
            return len(connection.execute(waiting).all())

        return await self.app._database.read(read)

    @property
    def prompt(self) -> list[dict[str, str]]:
        """The messages of the last model call."""
        messages: list[dict[str, str]] = self.model.calls[-1].body["messages"]
        return messages


ServeAgent = Callable[..., AbstractAsyncContextManager[AgentServer]]


def kinds(events: list[Any]) -> list[str]:
    return [event.WhichOneof("event") for event in events]


def answer_of(events: list[pb.ChatEvent]) -> str:
    return "".join(event.delta.text for event in events)


def one(events: list[Any], kind: str) -> Any:
    """Give the only event of that kind."""
    (found,) = [getattr(event, kind) for event in events if event.WhichOneof("event") == kind]
    return found


def components(report: pb.ContextReport) -> dict[str, Any]:
    """Give what became of each component, by kind."""
    return {component.kind: component for component in report.components}


def recalled(**contents: str | list[str]) -> memory_pb.RetrieveResponse:
    """Answer a Retrieve with these contents by type; nothing is a healthy empty answer."""
    texts = [
        (kind, text)
        for kind, several in contents.items()
        for text in ([several] if isinstance(several, str) else several)
    ]
    items = [
        memory_pb.RetrievedMemory(
            memory=memory_pb.Memory(
                memory_id=f"m{number}",
                memory_type=memory_pb.MemoryType.Value(f"MEMORY_TYPE_{kind.upper()}"),
                content=text,
            ),
            score=1.0,
        )
        for number, (kind, text) in enumerate(texts)
    ]
    legs = (memory_pb.RETRIEVE_LEG_PINNED, memory_pb.RETRIEVE_LEG_SEMANTIC)
    well = [memory_pb.RetrieveSource(leg=leg, state=memory_pb.SOURCE_STATE_OK) for leg in legs]
    return memory_pb.RetrieveResponse(items=items, sources=well)


@asynccontextmanager
async def running_agent(
    settings: AgentSettings, model: OpenAIServer, memory: Scripted, *, clock: Clock = utc_now
) -> AsyncIterator[AgentServer]:
    """Serve until the end of the block; the model lets go of what it holds then."""
    await asyncio.to_thread(migrate, settings)
    async with open_app(settings, clock=clock) as app:
        server = await start(server_settings(settings), app.service, ready=app.ready)
        try:
            async with open_channel(server.address) as channel:
                stub = agent_pb2_grpc.AgentServiceStub(channel)
                yield AgentServer(app, stub, server.address, model, memory, settings)
        finally:
            model.released.set()
            await server.stop(0)


@asynccontextmanager
async def gateway_of(agent: AgentServer) -> AsyncIterator[httpx.AsyncClient]:
    """Put a gateway in front of it, and give an HTTP client of that."""
    settings = GatewaySettings(
        listen="127.0.0.1:0",
        shutdown_grace=0.0,
        agent_target=agent.address,
        memory_target=agent.settings.memory_target,
    )
    listener = bind(listen_address(settings))
    host, port = listener.getsockname()[:2]
    signals = StopSignals()
    running = asyncio.create_task(serve(settings, listener, signals))
    try:
        base_url = f"http://{host}:{port}"
        async with httpx.AsyncClient(base_url=base_url, timeout=60, trust_env=False) as client:
            yield client
    finally:
        signals.first.set()
        await running
