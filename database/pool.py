"""Threads in which a foreign system is waited for, so that the event loop never waits."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class ThreadPool:
    """At most size calls at a time; further ones queue. One per foreign system.

    A call that its caller gave up while it was queued never runs; one that runs is left to end by
    itself (bound it in time), its outcome is dropped, and its thread then serves the next.
    """

    def __init__(self, name: str, size: int) -> None:
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def run(self, call: Callable[[], T]) -> T:
        """Give what the call gives, or raise what it raises. RuntimeError after close."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, context.run, call)

    def close(self) -> None:
        """Take no more calls, forget queued ones, and leave running ones to end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
