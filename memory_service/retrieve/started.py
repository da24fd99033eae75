"""Work that runs beside the rest of a request and ends with it."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")


@asynccontextmanager
async def started(work: Coroutine[Any, Any, _T]) -> AsyncGenerator[asyncio.Task[_T]]:
    """Start work; on the way out it is stopped if nobody needs it any more."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
