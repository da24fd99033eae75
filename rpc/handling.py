"""Handlers as gRPC is given them: each call goes through the interceptors, bytes in, bytes out.

One shape for the four kinds of RPC: a call is a coroutine. A handler that streams is iterated here
and not by gRPC, which would leave it to the garbage collector when the client goes away; here its
`finally` runs at once and in the task of the call.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from rpc.errors import Failure

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


@dataclass(slots=True)
class Call:
    """One call: "/package.Service/Method", the kind as in grpc_type, and how it ended so far."""

    method: str
    kind: str
    context: Context
    code: grpc.StatusCode = grpc.StatusCode.OK


Proceed = Callable[[], Awaitable[Any]]
Interceptor = Callable[[Call, Proceed], Awaitable[Any]]

_WITH_KIND: dict[tuple[bool, bool], tuple[str, Callable[..., Handler]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class Registrar:
    """What a generated add_XServicer_to_server takes for the server; it wraps what is added."""

    def __init__(self, server: grpc.aio.Server, interceptors: Iterable[Interceptor]) -> None:
        self._server = server
        self._interceptors = tuple(interceptors)

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """Add handlers that are asked by method name."""
        self._server.add_generic_rpc_handlers(
            [_Wrapped(handler, self._interceptors) for handler in handlers]
        )

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add handlers by name, which gRPC finds faster."""
        self._server.add_registered_method_handlers(
            service,
            {
                name: wrap(f"/{service}/{name}", handler, self._interceptors)
                for name, handler in handlers.items()
            },
        )


class _Wrapped(grpc.GenericRpcHandler):
    def __init__(
        self, inner: grpc.GenericRpcHandler, interceptors: tuple[Interceptor, ...]
    ) -> None:
        self._inner = inner
        self._interceptors = interceptors

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "Handler | None":
        handler = self._inner.service(handler_call_details)
        if handler is None:
            return None
        return wrap(handler_call_details.method, handler, self._interceptors)


class UnknownMethods(grpc.GenericRpcHandler):
    """Ends calls of methods that nobody serves, with a reason as all others; to be added last.

    Logs and metrics know them by one name: callers invent them.
    """

    def __init__(self, interceptors: tuple[Interceptor, ...]) -> None:
        # Of the four kinds the one that waits for no message.
        refusing: Handler = grpc.stream_stream_rpc_method_handler(_refuse)
        self._handler = wrap("/unknown/unknown", refusing, interceptors)

    def service(self, _details: grpc.HandlerCallDetails) -> Handler:
        """Take whatever is left."""
        return self._handler


async def _refuse(_requests: Any, _context: Context) -> None:
    text = "this server has no such method"
    raise Failure(grpc.StatusCode.UNIMPLEMENTED, "UNKNOWN_METHOD", text)


def wrap(method: str, handler: Handler, interceptors: tuple[Interceptor, ...]) -> Handler:
    """Give the handler with the interceptors around it, the first outermost."""
    kind, make = _WITH_KIND[handler.request_streaming, handler.response_streaming]
    inner = getattr(handler, kind)
    parse = partial(_parsed, handler.request_deserializer)
    serialize = handler.response_serializer
    run = _stream if handler.response_streaming else _unary

    async def called(request: Any, context: Context) -> Any:
        async def handle() -> Any:
            given = request if handler.request_streaming else parse(request)
            return await run(inner, given, context, serialize)

        call = Call(method, kind, context)
        proceed: Proceed = handle
        for interceptor in reversed(interceptors):
            proceed = partial(interceptor, call, proceed)
        return await proceed()

    return make(
        called,
        request_deserializer=parse if handler.request_streaming else None,
        response_serializer=serialize if handler.response_streaming else None,
    )


async def _unary(inner: Any, request: Any, context: Context, serialize: Any) -> Any:
    response = await inner(request, context)
    return response if serialize is None else serialize(response)


async def _stream(inner: Any, request: Any, context: Context, _serialize: Any) -> None:
    answers = inner(request, context)
    if inspect.isawaitable(answers):  # a handler that calls context.write itself
        await answers
        return
    async with aclosing(answers) as responses:
        async for response in responses:
            await context.write(response)


def _parsed(deserialize: Callable[[bytes], Any] | None, raw: bytes) -> Any:
    if deserialize is None:
        return raw
    try:
        return deserialize(raw)
    except (DecodeError, ValueError):
        code, text = grpc.StatusCode.INVALID_ARGUMENT, "the bytes are not a message of this RPC"
        raise Failure(code, "MALFORMED_MESSAGE", text) from None
