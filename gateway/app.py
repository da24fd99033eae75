"""The composition root: the only place that constructs what the gateway is made of."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from grpc_health.v1 import health_pb2_grpc
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp

from agent_service.v1 import agent_pb2_grpc
from gateway.auth import Access, KeyAccess, OpenAccess
from gateway.endpoints import (
    Backends,
    Edge,
    document_endpoints,
    endpoint_of,
    health_endpoint,
    refused,
)
from gateway.errors import Refusal
from gateway.observed import Observed
from gateway.routes import ROUTES
from gateway.settings import GatewaySettings
from gateway.streaming import StreamSettings
from memory_service.v1 import memory_pb2_grpc
from rpc.channel import open_channel


@asynccontextmanager
async def open_gateway(
    settings: GatewaySettings, streams: StreamSettings | None = None
) -> AsyncIterator[ASGIApp]:
    """Open the channels and give the application; neither service needs to answer yet.

    Raises KeysUnreadable.
    """
    async with AsyncExitStack() as closing:
        access = make_access(settings)
        channels: dict[str, Any] = {
            "agent": open_channel(
                settings.agent_target, service_token=settings.agent_token.get_secret_value()
            ),
            "memory": open_channel(
                settings.memory_target, service_token=settings.memory_token.get_secret_value()
            ),
        }
        for channel in channels.values():
            await closing.enter_async_context(channel)
        backends = Backends(
            stubs={
                "agent": agent_pb2_grpc.AgentServiceStub(channels["agent"]),
                "memory": memory_pb2_grpc.MemoryServiceStub(channels["memory"]),
            },
            health={
                name: health_pb2_grpc.HealthStub(channel) for name, channel in channels.items()
            },
            timeout=settings.timeout,
        )
        edge = Edge(
            access=access,
            max_body_bytes=settings.max_body_bytes,
            streams=streams or stream_settings(settings),
        )
        yield make_app(backends, edge, keys=settings.api_keys_file is not None)


def make_app(backends: Backends, edge: Edge, *, keys: bool) -> ASGIApp:
    """Give the application; keys: its document says that requests need one."""
    openapi_json, docs = document_endpoints(keys=keys)
    own = [
        HttpRoute("/healthz", health_endpoint(backends)),
        HttpRoute("/openapi.json", openapi_json),
        HttpRoute("/docs", docs),
    ]
    api = [
        HttpRoute(
            route.path.replace("{memory_id}", "{memory_id:path}"),
            endpoint_of(route, backends, edge),
            methods=[route.method],
        )
        for route in ROUTES
    ]
    handlers: Any = dict.fromkeys((Refusal, HTTPException, ClientDisconnect, Exception), refused)
    return Observed(Starlette(routes=[*own, *api], exception_handlers=handlers))


def make_access(settings: GatewaySettings) -> Access:
    """Say who callers are. Raises KeysUnreadable."""
    if settings.api_keys_file is None:
        return OpenAccess(settings.allowed_hosts)
    return KeyAccess(settings.api_keys_file)


def stream_settings(settings: GatewaySettings) -> StreamSettings:
    """Say how events flow."""
    return StreamSettings(
        first_event_timeout=settings.first_event_timeout, heartbeat=settings.heartbeat
    )
