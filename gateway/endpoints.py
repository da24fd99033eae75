"""What answers a request: one call of one RPC, or what the gateway knows by itself."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp

from gateway import docs_page, openapi
from gateway.auth import Access
from gateway.codec import encode
from gateway.errors import Code, Refusal, error_body, from_rpc
from gateway.requests import read_request
from gateway.routes import Route
from gateway.sse import Place
from gateway.streaming import EventStream, StreamSettings, first_answer
from rpc.errors import Failure
from rpc.request import request_id

Endpoint = Callable[[Request], Awaitable[ASGIApp]]
HEALTH_TIMEOUT = 0.5
_CODE_OF_STATUS = {404: Code.NOT_FOUND, 405: Code.UNIMPLEMENTED}
_REASON_OF_STATUS = {404: "NO_SUCH_ROUTE", 405: "METHOD_NOT_ALLOWED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """How to reach the services, by name: the stubs, and their health. timeout is per call."""

    stubs: Mapping[str, Any]
    health: Mapping[str, Any]
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What every API route needs: who a caller is, how much may be sent, how events flow."""

    access: Access
    max_body_bytes: int
    streams: StreamSettings


class Json(Response):
    """JSON in UTF-8 that nobody stores or guesses another type for."""

    media_type = "application/json"

    def __init__(
        self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        super().__init__(body, status_code, headers)
        self.headers.setdefault("Cache-Control", "no-store")
        self.headers.setdefault("X-Content-Type-Options", "nosniff")


def endpoint_of(route: Route, backends: Backends, edge: Edge) -> Endpoint:
    """Give what answers a route."""
    rpc = getattr(backends.stubs[route.service], route.rpc.name)

    async def unary(request: Request) -> Response:
        message = await _read(request)
        try:
            answer = await rpc(message, timeout=backends.timeout)
        except grpc.RpcError as error:
            raise from_rpc(error, route.service) from None
        return Json(encode(answer))

    async def streamed(request: Request) -> ASGIApp:
        message = await _read(request)
        call = rpc(message)
        first = await first_answer(call, request.receive, edge.streams, route.service)
        place = Place(message.conversation_id, getattr(message, "turn_id", ""))
        if first is None and route.resumes:
            return Response(status_code=204)  # tells an EventSource to stop reconnecting
        if first is None:
            text = f"the {route.service} service ended the turn before it began"
            raise Refusal(Failure(Code.INTERNAL, "STREAM_ENDED", text))
        return EventStream(call, first, place, edge.streams, route.service)

    async def _read(request: Request) -> Any:
        user = edge.access.user_of(request.headers)
        return await read_request(request, route, user, edge.max_body_bytes)

    return streamed if route.streams else unary


def health_endpoint(backends: Backends) -> Endpoint:
    """Give what answers /healthz: 200 while the gateway serves, and what it reaches."""

    async def health(_request: Request) -> Response:
        names = list(backends.health)
        states = await asyncio.gather(*(_state(backends.health[name]) for name in names))
        return Json({"status": "serving", **dict(zip(names, states, strict=True))})

    return health


async def _state(stub: Any) -> str:
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=HEALTH_TIMEOUT)
    except grpc.RpcError:
        return "unreachable"
    serving = answer.status == health_pb2.HealthCheckResponse.SERVING
    return "serving" if serving else "not_serving"


def document_endpoints(*, keys: bool) -> tuple[Endpoint, Endpoint]:
    """Give what answers /openapi.json and /docs; both are made once."""
    document = openapi.document(keys=keys)
    page = docs_page.page(document)

    async def openapi_json(_request: Request) -> Response:
        return JSONResponse(document)

    async def docs(_request: Request) -> Response:
        return HTMLResponse(page, headers={"Content-Security-Policy": docs_page.POLICY})

    return openapi_json, docs


async def refused(_request: Request, error: Exception) -> Response:
    """Answer with the error body, whatever has gone wrong."""
    refusal = _refusal(error)
    return Json(error_body(refusal, request_id()), refusal.status, refusal.headers)


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ClientDisconnect):
        return Refusal(Failure(Code.CANCELLED, "CLIENT_LEFT", "the client has left"))
    if isinstance(error, HTTPException):
        code = _CODE_OF_STATUS.get(error.status_code, Code.INVALID_ARGUMENT)
        reason = _REASON_OF_STATUS.get(error.status_code, "BAD_REQUEST")
        failure = Failure(code, reason, error.detail)
        return Refusal(failure, status=error.status_code, headers=error.headers or {})
    return Refusal(Failure(Code.INTERNAL, "INTERNAL", "something went wrong in the gateway"))
