"""A tiny service with one RPC of each kind, whose behaviours a test gives."""

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import wrappers_pb2

from rpc.channel import open_channel
from rpc.errors import Failure, FailureOf
from rpc.loop import run
from rpc.server import (
    Ready,
    RunningServer,
    ServerSettings,
    Service,
    serve_until_signal,
    start,
)

logging.getLogger("grpc").setLevel(logging.CRITICAL)
Text = wrappers_pb2.StringValue
NAME = "test.v1.Echo"


async def say(request: Text, _context: Any) -> Text:
    return Text(value=request.value)


async def stream(request: Text, _context: Any) -> AsyncIterator[Text]:
    for word in request.value.split():
        yield Text(value=word)


async def collect(requests: AsyncIterator[Text], _context: Any) -> Text:
    return Text(value=" ".join([request.value async for request in requests]))


async def talk(requests: AsyncIterator[Text], _context: Any) -> AsyncIterator[Text]:
    async for request in requests:
        yield Text(value=request.value)


@dataclass(frozen=True)
class Echo:
    Say: Callable[..., Awaitable[Any]] = say
    Stream: Callable[..., Any] = stream
    Collect: Callable[..., Awaitable[Any]] = collect
    Talk: Callable[..., AsyncIterator[Any]] = talk


def add_echo(servicer: Echo, server: Any) -> None:
    """Register like the generated add functions do."""
    how: dict[str, Any] = {
        "request_deserializer": Text.FromString,
        "response_serializer": Text.SerializeToString,
    }
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Say": grpc.unary_unary_rpc_method_handler(servicer.Say, **how),
        "Stream": grpc.unary_stream_rpc_method_handler(servicer.Stream, **how),
        "Collect": grpc.stream_unary_rpc_method_handler(servicer.Collect, **how),
        "Talk": grpc.stream_stream_rpc_method_handler(servicer.Talk, **how),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))
    server.add_registered_method_handlers(NAME, handlers)


class Odd(Exception):
    """An error of the service's own, which it knows."""


def failure_of(error: Exception) -> Failure | None:
    if isinstance(error, Odd):
        return Failure(grpc.StatusCode.FAILED_PRECONDITION, "ODD", str(error))
    return None


def service(echo: Echo, known: FailureOf = failure_of) -> Service:
    return Service(name=NAME, add=add_echo, servicer=echo, failure_of=known, domain="echo")


async def always() -> bool:
    return True


LOOPBACK = ServerSettings(listen="127.0.0.1:0", grace=1.0)


@asynccontextmanager
async def serving(
    echo: Echo | None = None,
    settings: ServerSettings = LOOPBACK,
    *,
    ready: Ready = always,
    known: FailureOf = failure_of,
) -> AsyncIterator[RunningServer]:
    server = await start(settings, service(echo or Echo(), known), ready=ready)
    try:
        yield server
    finally:
        await server.stop(0)


class Client:
    """Stubs of the service on a channel; raw ones send bytes as they are."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        texts = (Text.SerializeToString, Text.FromString)
        self.say: Any = channel.unary_unary(f"/{NAME}/Say", *texts)
        self.stream: Any = channel.unary_stream(f"/{NAME}/Stream", *texts)
        self.collect: Any = channel.stream_unary(f"/{NAME}/Collect", *texts)
        self.talk: Any = channel.stream_stream(f"/{NAME}/Talk", *texts)
        self.raw_say: Any = channel.unary_unary(f"/{NAME}/Say")
        self.raw_stream: Any = channel.unary_stream(f"/{NAME}/Stream")
        self.raw_collect: Any = channel.stream_unary(f"/{NAME}/Collect")
        self.raw_talk: Any = channel.stream_stream(f"/{NAME}/Talk")


@asynccontextmanager
async def client(server: RunningServer, **options: Any) -> AsyncIterator[Client]:
    async with open_channel(server.address, **options) as channel:
        yield Client(channel)


def worker(listen: str, number: int) -> None:
    """Answer with the number of this worker until SIGTERM."""

    async def answer(_request: Text, _context: Any) -> Text:
        return Text(value=str(number))

    settings = ServerSettings(listen=listen, grace=1.0, reuse_port=True)
    run(serve_until_signal(settings, service(Echo(Say=answer)), ready=always))


def broken_worker(_listen: str, _number: int) -> None:
    sys.exit("no such setting")


def deaf_worker(_listen: str, number: int) -> None:
    """Say by a file that SIGTERM is ignored from now on."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(os.environ["DEAF_WORKERS"], str(number)).touch()
    signal.pause()
