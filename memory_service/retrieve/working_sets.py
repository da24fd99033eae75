"""The working sets of recent users, each brought to the revision that a request has read."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from memory_service.domain.model import UserState
from memory_service.ports import MemoryReader, StoredRow
from memory_service.retrieve.held import Held
from memory_service.retrieve.settings import RetrieveSettings

_T = TypeVar("_T")

_INLINE_ROWS = 100
"""So many rows are built on the event loop: about 6 ms."""
_INLINE_CHANGES = 200
"""More changes than that mean a new working set, which is built in a thread."""
_OVERFLOW = 1.1


class WorkingSets:
    """Least recently used first; a Held is never shared before it is built."""

    def __init__(
        self,
        reader: MemoryReader,
        *,
        fingerprint: str,
        settings: RetrieveSettings,
        executor: Executor | None,
    ) -> None:
        self._reader = reader
        self._fingerprint = fingerprint
        self._settings = settings
        self._executor = executor
        self._held: OrderedDict[str, tuple[Held, int]] = OrderedDict()
        self._nbytes = 0
        self._coming: dict[str, asyncio.Task[Held]] = {}

    async def at(
        self, state: UserState, untold: Mapping[str, object], *, whole: bool, until: float
    ) -> Held | None:
        """Give what is held of a user at the state's revision or later; None if time runs out.

        whole: with the embeddings of all rows. What was begun goes on for the next request.
        Raises StoreUnavailable.
        """
        try:
            async with asyncio.timeout_at(until):
                while True:
                    task = self._coming.get(state.user_id)
                    if task is None:
                        work = self._bring(state, untold, whole=whole)
                        task = asyncio.create_task(work)
                        self._coming[state.user_id] = task
                        task.add_done_callback(partial(self._arrived, state.user_id))
                    held = await asyncio.shield(task)
                    if held.working.revision >= state.revision and (held.whole or not whole):
                        held.prune(untold)
                        return held
        except TimeoutError:
            return None

    async def close(self) -> None:
        """Stop what is being built."""
        for task in self._coming.values():
            task.cancel()
        await asyncio.gather(*self._coming.values(), return_exceptions=True)

    def _arrived(self, user_id: str, task: asyncio.Task[Held]) -> None:
        del self._coming[user_id]
        if not task.cancelled():
            task.exception()  # a request that gave up waiting does not ask for it

    async def _bring(self, state: UserState, untold: Mapping[str, object], *, whole: bool) -> Held:
        held = await self._current(state, untold, whole=whole)
        if whole and not held.whole:
            rows, _ = await self._rows(state.user_id)
            held.hold_all(rows)
        self._keep(state.user_id, held)
        return held

    async def _current(
        self, state: UserState, untold: Mapping[str, object], *, whole: bool
    ) -> Held:
        """Follow the changes; build anew once rows are gone for good, or many, or μ is stale."""
        known = self._held.get(state.user_id)
        if known is None or known[0].working.revision < state.void_before:
            return await self._build(state, untold, whole=whole)
        held = known[0]
        if held.working.revision < state.revision:
            changes = await self._reader.changes(
                state.user_id, after=held.working.revision, fingerprint=self._fingerprint
            )
            if len(changes) > _INLINE_CHANGES:
                return await self._build(state, untold, whole=whole or held.whole)
            newest = max((row.memory.revision for row in changes), default=0)
            held.enter(changes, revision=max(state.revision, newest))
        too_many = len(held.working) > self._settings.row_limit * _OVERFLOW
        if held.working.stale_mean or too_many:
            return await self._build(state, untold, whole=whole or held.whole)
        return held

    async def _build(self, state: UserState, untold: Mapping[str, object], *, whole: bool) -> Held:
        rows, total = await self._rows(state.user_id)
        keep = None if whole else frozenset(untold)
        work = partial(Held.build, rows, revision=state.revision, total=total, keep=keep)
        return work() if len(rows) <= _INLINE_ROWS else await self._in_thread(work)

    async def _rows(self, user_id: str) -> tuple[Sequence[StoredRow], int]:
        return await self._reader.rows(
            user_id, fingerprint=self._fingerprint, limit=self._settings.row_limit
        )

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _keep(self, user_id: str, held: Held) -> None:
        _, before = self._held.pop(user_id, (held, 0))
        self._held[user_id] = (held, held.nbytes)
        self._nbytes += held.nbytes - before
        while self._nbytes > self._settings.working_set_bytes and self._held:
            _, (_, freed) = self._held.popitem(last=False)
            self._nbytes -= freed
