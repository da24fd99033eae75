"""The way to one Milvus collection: bounded calls, a breaker, and recovery by itself."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TypeVar

import structlog
from pymilvus import MilvusClient, MilvusException

from memory_service.adapters.breaker import Breaker
from memory_service.adapters.milvus import opening
from memory_service.adapters.milvus.address import MilvusAddress, Timeouts
from memory_service.adapters.milvus.causes import (
    FAULTS,
    LASTING,
    NOT_FOUND,
    NOT_LOADED,
    Cause,
    cause_of,
    code_of,
)
from memory_service.adapters.milvus.opening import EmbeddedMilvus, IndexFacts
from memory_service.adapters.milvus.refusals import IndexBroken, IndexBusy
from memory_service.domain.errors import IndexUnavailable, StoreUnavailable
from memory_service.ports import Collections

Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)


class Lane(StrEnum):
    """Threads of their own for each kind of call, so that one hung kind holds up no other."""

    SEARCH = "milvus-search"
    WRITE = "milvus-write"
    OPEN = "milvus-open"


_THREADS = {Lane.SEARCH: 4, Lane.WRITE: 1, Lane.OPEN: 1}
"""One writer: milvus-lite has no lock for two."""


class MilvusConnection:
    """Opens the collection in the background, and again whenever the breaker opened."""

    def __init__(
        self,
        address: MilvusAddress,
        *,
        collection: str,
        dims: int,
        collections: Collections,
        timeouts: Timeouts,
        breaker: Breaker,
    ) -> None:
        self.facts: IndexFacts | None = None
        self.openings = 0
        """How often it was opened; what was learnt of an earlier opening is void."""
        self._address = address
        self._collection = collection
        self._dims = dims
        self._collections = collections
        self._timeouts = timeouts
        self._breaker = breaker
        self._pools = {lane: ThreadPoolExecutor(n, lane) for lane, n in _THREADS.items()}
        self._embedded: EmbeddedMilvus | None = None
        self._client: MilvusClient | None = None
        self._away = Cause.UNAVAILABLE
        self._tried = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[object]] = set()
        self._closed = False

    async def start(self) -> None:
        """Begin to open; the embedded Milvus is open when this returns.

        Raises IndexBusy or IndexBroken for an embedded Milvus. Waits for no server.
        """
        if self._address.lite:
            if self._embedded is None:
                await self._in(Lane.OPEN, self._embed)
            self._begin_opening()
            await self._tried.wait()
        self._begin_opening()

    async def call(
        self, lane: Lane, seconds: float, work: Callable[[MilvusClient], Answer]
    ) -> Answer:
        """Do work within seconds, opening included. Raises IndexUnavailable.

        It runs in a task of its own, so that its outcome counts whoever still waits for it.
        """
        self.check()
        self._begin_opening()
        call = asyncio.create_task(self._attempt(lane, seconds, work))
        self._calls.add(call)
        call.add_done_callback(self._forget)
        return await asyncio.shield(call)

    def check(self) -> None:
        """Raise IndexUnavailable if it is known to be away."""
        if self._closed:
            raise IndexUnavailable(Cause.UNAVAILABLE)
        if self._tried.is_set() and self._client is None:
            self._begin_opening()
            raise IndexUnavailable(self._away)

    async def close(self) -> None:
        """Let go of it; calls on their way end with IndexUnavailable."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(client.close)
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        if self._embedded is not None:
            await asyncio.to_thread(self._embedded.close)
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------ calls

    async def _attempt(
        self, lane: Lane, seconds: float, work: Callable[[MilvusClient], Answer]
    ) -> Answer:
        client: MilvusClient | None = None
        try:
            async with asyncio.timeout(seconds):
                await self._tried.wait()
                client = self._client
                if client is None:
                    raise IndexUnavailable(self._away)
                answer = await self._in(lane, lambda: self._loaded(client, work))
        except FAULTS as fault:
            cause = cause_of(fault)
            if cause is not Cause.REFUSED and client is self._client:
                self._failed(cause, lost=code_of(fault) == NOT_FOUND)
            raise IndexUnavailable(cause) from fault
        if client is self._client:
            self._breaker.success()
        return answer

    def _loaded(self, client: MilvusClient, work: Callable[[MilvusClient], Answer]) -> Answer:
        """Do the work; if the collection is not in memory, load it and do the work again."""
        try:
            return work(client)
        except MilvusException as fault:
            if fault.code != NOT_LOADED:
                raise
        client.load_collection(self._collection, timeout=self._timeouts.write)
        return work(client)

    def _failed(self, cause: Cause, *, lost: bool) -> None:
        """Note a failure; when that opens the breaker, start over in the background."""
        self._breaker.failure()
        if lost:
            self._breaker.trip()
        if self._breaker.closed or self._client is None:
            return
        _log.warning("index_away", cause=cause.value, lost=lost)
        stale, self._client = self._client, None
        self._away = Cause.BREAKER_OPEN
        # Closing it ends the calls that hang in it.
        self._pools[Lane.OPEN].submit(stale.close)
        self._begin_opening()

    def _forget(self, call: "asyncio.Task[object]") -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # seen, even if the caller went away

    async def _in(self, lane: Lane, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._pools[lane], work)

    # ------------------------------------------------------------ opening

    def _begin_opening(self) -> None:
        if self._client is None and (self._opening is None or self._opening.done()):
            self._opening = asyncio.create_task(self._open_until_it_works())
            # Also if it died: nobody waits for an opening that is not under way.
            self._opening.add_done_callback(lambda _opening: self._tried.set())

    async def _open_until_it_works(self) -> None:
        while True:
            await asyncio.sleep(self._breaker.wait())
            self._breaker.admit()
            try:
                async with asyncio.timeout(self._timeouts.open):
                    client, self.facts = await self._open()
            except (*FAULTS, IndexUnavailable, StoreUnavailable, IndexBusy, IndexBroken) as fault:
                self._not_open(_opening_cause(fault))
            else:
                self._breaker.success()
                self._client = client
                self.openings += 1
                self._tried.set()
                version = self.facts.server_version
                _log.info("index_open", collection=self._collection, server_version=version)
                return

    def _not_open(self, cause: Cause) -> None:
        self._away = cause if cause in LASTING else Cause.BREAKER_OPEN
        self._breaker.failure()
        if self._breaker.closed:
            self._breaker.trip()
        self._tried.set()
        _log.warning("index_not_open", cause=cause.value, retry_in=self._breaker.wait())

    async def _open(self) -> tuple[MilvusClient, IndexFacts]:
        # Asked before anything else, so that an empty store's collection is ready from the start.
        await self._collections.ready(self._collection)
        client = await self._in(Lane.OPEN, self._connect)
        try:
            facts, there = await self._in(Lane.OPEN, lambda: self._look(client))
            if not there and await self._collections.ready(self._collection):
                # Told before it is created: nobody may find it empty and marked as ready.
                await self._collections.mark_lost(self._collection)
            await self._in(
                Lane.OPEN,
                lambda: opening.prepare(client, facts, self._dims, self._timeouts.write),
            )
        except BaseException:
            self._pools[Lane.OPEN].submit(client.close)
            raise
        return client, facts

    def _embed(self) -> EmbeddedMilvus:
        self._embedded = EmbeddedMilvus(self._address.uri)
        return self._embedded

    def _connect(self) -> MilvusClient:
        address = self._address
        uri = (self._embedded or self._embed()).uri if address.lite else address.uri
        return opening.connect(
            uri, address.token, lite=address.lite, timeout=self._timeouts.connect
        )

    def _look(self, client: MilvusClient) -> tuple[IndexFacts, bool]:
        wait = self._timeouts.connect
        facts = opening.look(client, self._collection, lite=self._address.lite, timeout=wait)
        return facts, opening.exists(client, self._collection, wait)


def _opening_cause(fault: BaseException) -> Cause:
    if isinstance(fault, IndexBusy):
        return Cause.BUSY
    if isinstance(fault, (IndexBroken, StoreUnavailable)):
        return Cause.UNAVAILABLE
    return cause_of(fault)
