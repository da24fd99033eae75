"""gRPC health that follows what a service says of itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

Ready = Callable[[], Awaitable[bool]]
"""Says whether the service can serve now. May raise or hang: then it cannot."""

log = structlog.get_logger("rpc")


class Pulse:
    """Health of the empty name and of the service: asks ready each `poll` seconds."""

    def __init__(self, service: str, ready: Ready, *, poll: float, timeout: float) -> None:
        self.unready = asyncio.Event()
        self.unready.set()
        self._names = ("", service)
        self._ready = ready
        self._poll = poll
        self._timeout = timeout
        self._servicer = health.aio.HealthServicer()
        self._polling: asyncio.Task[None] | None = None

    async def add_to(self, server: Any) -> None:
        """Serve health, NOT_SERVING so far."""
        await self._say(serving=False)
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def start(self) -> None:
        """Ask for the first time, then go on asking."""
        await self._say(serving=await answer(self._ready, self._timeout))
        self._polling = asyncio.create_task(self._keep_asking())

    async def stop(self) -> None:
        """Say NOT_SERVING for good."""
        if self._polling is not None:
            self._polling.cancel()
        await self._servicer.enter_graceful_shutdown()

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(self._poll)
            await self._say(serving=await answer(self._ready, self._timeout))

    async def _say(self, *, serving: bool) -> None:
        response = health_pb2.HealthCheckResponse
        for name in self._names:
            await self._servicer.set(name, response.SERVING if serving else response.NOT_SERVING)
        if serving == self.unready.is_set():
            log.info("health", serving=serving)
        if serving:
            self.unready.clear()
        else:
            self.unready.set()


async def answer(ready: Ready, timeout: float) -> bool:  # noqa: ASYNC109 - of a foreign call
    """Ask once; a question that raises or takes longer than timeout seconds is answered no."""
    try:
        async with asyncio.timeout(timeout):
            return await ready()
    except TimeoutError:
        log.warning("ready_timed_out", seconds=timeout)
    except Exception as fault:  # noqa: BLE001 — top of the polling loop: it may work a second later
        log.warning("ready_failed", fault=f"{type(fault).__module__}.{type(fault).__name__}")
    return False
