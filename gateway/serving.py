"""How the process serves HTTP, from the socket to the last event."""

import asyncio
import math
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import structlog
import uvicorn
from starlette.types import ASGIApp

from gateway.app import open_gateway, stream_settings
from gateway.settings import GatewaySettings
from rpc.listen import BadListen, ListenFailed, Tcp, UnsafeListen, is_private, parse
from rpc.server import StopSignals, stop_signals

log = structlog.get_logger("gateway")
_LAST_WORDS = 2  # seconds that streams have to say that the process ends


def listen_address(settings: GatewaySettings) -> Tcp:
    """Give where to listen.

    Raises BadListen, and UnsafeListen for an address that others can reach without authentication.
    """
    address = parse(settings.listen)
    if not isinstance(address, Tcp):
        message = f"the gateway listens over TCP, not at {address}"
        raise BadListen(message)
    if settings.api_keys_file is None and not is_private(address):
        message = (
            f"refusing to listen on {address} without authentication: "
            "set GATEWAY_API_KEYS_FILE, or listen on 127.0.0.1"
        )
        raise UnsafeListen(message)
    return address


def bind(address: Tcp) -> socket.socket:
    """Listen there. Raises ListenFailed."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    both = address.host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            (address.host, address.port), family=family, backlog=2048, dualstack_ipv6=both
        )
    except socket.gaierror as error:
        message = f"cannot listen on {address}: {error.strerror}"
        raise ListenFailed(message) from None
    except OSError as error:  # whose own text repeats the address
        message = f"cannot listen on {address}: {os.strerror(error.errno or 0)}"
        raise ListenFailed(message) from None


async def serve_until_signal(settings: GatewaySettings, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then stop as serve does; announce is told the address.

    Raises BadListen, UnsafeListen, ListenFailed and KeysUnreadable.
    """
    listener = bind(listen_address(settings))
    host, port = listener.getsockname()[:2]
    with stop_signals() as signals:
        await serve(settings, listener, signals, lambda: announce(str(Tcp(host, port))))


async def serve(
    settings: GatewaySettings,
    listener: socket.socket,
    signals: StopSignals,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve on the listener until the first signal, then stop within the grace and 2 seconds more.

    Streams that are still running at the end of the grace, or at the second signal, end with an
    error event. ready is called when requests are taken. Raises KeysUnreadable.
    """
    streams = stream_settings(settings)
    with listener:
        async with open_gateway(settings, streams) as app:
            server = _Server(_config(app, settings.shutdown_grace))
            async with _stopped(server, signals, streams.closing, settings.shutdown_grace):
                ready()
                await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn without signal handlers of its own, which would end the process by a signal."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: ASGIApp, grace: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,  # the logs of this process are set up already
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(grace) + _LAST_WORDS,
    )


@asynccontextmanager
async def _stopped(
    server: uvicorn.Server, signals: StopSignals, closing: asyncio.Event, grace: float
) -> AsyncIterator[None]:
    """Stop the server at the first signal, and end streams after the grace or at the second."""

    async def stop() -> None:
        await signals.first.wait()
        server.should_exit = True
        try:
            async with asyncio.timeout(grace):
                await signals.second.wait()
        except TimeoutError:
            log.info("streams_ended", reason="the grace is over")
        closing.set()

    stopping = asyncio.create_task(stop())
    try:
        yield
    finally:
        stopping.cancel()
