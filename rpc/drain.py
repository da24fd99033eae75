"""Calls that are running, and how they end when the server stops."""

import asyncio
from typing import Any

import grpc

from rpc.errors import Failure
from rpc.handling import Call, Proceed


class Drain:
    """Knows the running calls of one server; gRPC runs each in a task of its own.

    A call is running until its task is done, which is after its answer was sent.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._ended: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def intercept(self, _call: Call, proceed: Proceed) -> Any:
        """Run the call, unless the server stops: UNAVAILABLE, reason SHUTTING_DOWN."""
        task = asyncio.current_task()
        if self._closed or task is None:
            raise shutting_down()
        self._running.add(task)
        self._idle.clear()
        task.add_done_callback(self._left)
        try:
            return await proceed()
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()  # if the client has left too, one cancellation remains
            raise shutting_down() from None

    def close(self) -> None:
        """Refuse calls from now on."""
        self._closed = True

    def end(self) -> None:
        """Cancel the running calls; their clients get UNAVAILABLE, reason SHUTTING_DOWN."""
        self._ended |= self._running
        for task in self._running:
            task.cancel()

    async def idle(self, seconds: float) -> bool:
        """Wait until no call is running; False if that takes longer."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _left(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._ended.discard(task)
        if not self._running:
            self._idle.set()


def shutting_down() -> Failure:
    """Give what a call is told that the end of the server ends: try again, elsewhere or later."""
    text = "this server is shutting down"
    return Failure(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", text)
