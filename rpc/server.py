"""How a process serves: start a server, or serve until somebody asks the process to end."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from rpc.health import Ready, answer
from rpc.listen import BadListen, ListenFailed, UnsafeListen
from rpc.running import RunningServer, ServerSettings, Service, start

__all__ = [
    "BadListen",
    "ListenFailed",
    "Ready",
    "RunningServer",
    "ServerSettings",
    "Service",
    "StopSignals",
    "UnsafeListen",
    "serve_until_signal",
    "start",
    "stop_signals",
]

log = structlog.get_logger("rpc")
OnStart = Callable[[RunningServer], None]


@dataclass(frozen=True, slots=True)
class StopSignals:
    """Set by the first and by the second SIGTERM or SIGINT."""

    first: asyncio.Event = field(default_factory=asyncio.Event)
    second: asyncio.Event = field(default_factory=asyncio.Event)


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Take SIGTERM and SIGINT as events instead of exceptions, inside; main thread only."""
    signals = StopSignals()
    loop = asyncio.get_running_loop()

    def received(name: str) -> None:
        log.info("signal", name=name)
        (signals.second if signals.first.is_set() else signals.first).set()

    taken = (signal.SIGTERM, signal.SIGINT)
    for number in taken:
        loop.add_signal_handler(number, received, number.name)
    try:
        yield signals
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


async def serve_until_signal(
    settings: ServerSettings,
    service: Service,
    *,
    ready: Ready,
    on_start: OnStart = lambda _server: None,
    on_drain: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then stop within grace + 2 seconds; a second signal ends all.

    on_start is told of the running server; on_drain is called at the signal, before calls are
    refused, so that long streams can say goodbye within the grace. With reuse_port the server
    listens only while it is ready, so that clients reach the other workers. Raises what start
    raises.
    """
    serve = _serve_while_ready if settings.reuse_port else _serve
    with stop_signals() as signals:
        server = await serve(settings, service, ready, on_start, signals.first)
        on_drain()
        if server is not None:
            await _until_one(server.stop(settings.grace), signals.second.wait())
            if signals.second.is_set():
                await server.stop(0)


async def _serve(
    settings: ServerSettings,
    service: Service,
    ready: Ready,
    on_start: OnStart,
    stop: asyncio.Event,
) -> RunningServer | None:
    server = await start(settings, service, ready=ready)
    on_start(server)
    await stop.wait()
    return server


async def _serve_while_ready(
    settings: ServerSettings,
    service: Service,
    ready: Ready,
    on_start: OnStart,
    stop: asyncio.Event,
) -> RunningServer | None:
    while not stop.is_set():
        if not await answer(ready, settings.poll_timeout):
            await _until_one(asyncio.sleep(settings.poll), stop.wait())
            continue
        server = await start(settings, service, ready=ready)
        on_start(server)
        await _until_one(server.unready(), stop.wait())
        if stop.is_set():
            return server
        log.warning("listener_closed", address=server.address, reason="not ready")
        await server.stop(settings.grace)
    return None


async def _until_one(*waits: Coroutine[Any, Any, Any]) -> None:
    """Run until one of them is done, and cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in done:
        task.result()
