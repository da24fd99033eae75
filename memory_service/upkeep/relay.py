"""Telling the index what changed in SQL, until it knows."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from memory_service.domain.errors import EmbedderUnavailable, IndexUnavailable, StoreUnavailable
from memory_service.domain.model import IndexState
from memory_service.ports import (
    Clock,
    Embedder,
    IndexNote,
    IndexOutbox,
    StoredRow,
    VectorIndex,
)
from memory_service.upkeep.embedding import embed_missing
from rpc.faults import place_of

_REFUSED = "refused"
"""The index is there and cannot take a row; every other cause is an outage."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """Durations in seconds. The lease outlasts embedding and writing a batch."""

    batch: int = 64
    lease: float = 60.0
    poll: float = 1.0
    gather: float = 0.1
    """Between hearing of a write and claiming, so that writes in a row make one batch."""
    first_wait: float = 0.5
    """Before a second try; doubles with each one, with jitter, up to longest_wait."""
    longest_wait: float = 15.0
    visible_after: float = 0.0
    """How stale a search may be: 0 for milvus-lite, 10 for a server."""
    depth_every: float = 5.0


class IndexRelay:
    """Claims notes, tells the index, and says what came of it; see step().

    There is no limit of attempts: an outage of index, embedder or SQL delays, and loses nothing.
    Any number of relays may run beside each other. on_depth hears now and then how many notes
    wait.
    """

    def __init__(
        self,
        *,
        outbox: IndexOutbox,
        index: VectorIndex,
        embedder: Embedder,
        clock: Clock,
        settings: RelaySettings | None = None,
        on_depth: Callable[[int], object] = lambda _depth: None,
    ) -> None:
        self._outbox = outbox
        self._index = index
        self._embedder = embedder
        self._clock = clock
        self._settings = settings or RelaySettings()
        self._on_depth = on_depth
        self._depth_time: datetime | None = None
        self._outages = 0
        self._retry_in = 0.0
        self._written = asyncio.Event()
        self._stopping = asyncio.Event()

    def notify(self) -> None:
        """Say that something was written, so that the relay need not wait for its next poll."""
        self._written.set()

    def stop(self) -> None:
        """Let run() end after the step that it is in."""
        self._stopping.set()
        self._written.set()

    async def run(self) -> None:
        """Go on until stop(). Nothing that happens in a step ends it."""
        while not self._stopping.is_set():
            self._written.clear()
            try:
                await self._report_depth()
                claimed = await self.step()
            except StoreUnavailable:
                await self._sit_out("store")
            except Exception as fault:  # noqa: BLE001 — the top of the relay's loop
                _log.error("index_relay_step_failed", **place_of(fault))
                await self._sit_out("unknown")
            else:
                if self._outages:
                    # Not sooner: a claim that finds nothing due would look like the outage's end.
                    # A little later, so that a relay with a better way to the index goes first.
                    await self._pause(self._retry_in + 2 * self._settings.poll, self._stopping)
                elif not claimed:
                    await self._pause(self._settings.poll, self._written)
                    if self._written.is_set():
                        await self._pause(self._settings.gather, self._stopping)

    async def step(self) -> int:
        """Settle what is visible by now, and tell one batch; gives how many notes were claimed.

        What the index is to hold is embedded if needed and upserted: SYNCED; all else is removed:
        REMOVED; those whose words have no usable vector are removed as well: FAILED. A note that
        cannot be told is given back with a later time, and holds up no other one.
        """
        now = self._clock()
        settings = self._settings
        await self._outbox.settle(before=now - timedelta(seconds=settings.visible_after))
        notes = await self._outbox.claim(limit=settings.batch, lease=settings.lease, now=now)
        if not notes:
            self._outages = 0
            return 0
        outages, self._outages = self._outages, 0
        try:
            await self._tell_or_divide(notes)
        except IndexUnavailable as away:
            self._outages = outages + 1
            await self._outage(notes, away.cause)
        return len(notes)

    async def _tell_or_divide(self, notes: Sequence[IndexNote]) -> None:
        """Tell notes; if that fails for another reason than an outage, tell them singly.

        One that still fails is poison, and given back. Raises IndexUnavailable in an outage; what
        was told until then stays told.
        """
        try:
            await self._tell(notes)
        except StoreUnavailable:
            raise
        except Exception as fault:  # the top of the relay's loop: poison
            if isinstance(fault, IndexUnavailable) and fault.cause != _REFUSED:
                raise
            if len(notes) > 1:
                for note in notes:
                    await self._tell_or_divide([note])
                return
            _log.error("index_note_failed", attempt=notes[0].attempt, **place_of(fault))
            await self._give_back(notes, type(fault).__name__)

    async def _tell(self, notes: Sequence[IndexNote]) -> None:
        fingerprint = self._embedder.fingerprint
        loaded = await self._outbox.load_any(notes, fingerprint=fingerprint)
        rows = {row.memory.memory_id: row for row in loaded if row.memory.is_indexed}
        waiting, reached, upserts = await self._embed(rows)
        reached |= {
            note.memory_id: IndexState.REMOVED for note in notes if note.memory_id not in rows
        }
        removed = [one for one, state in reached.items() if state is not IndexState.SYNCED]
        if removed:
            await self._index.remove(removed)
        if upserts:
            await self._index.upsert(upserts)
        by_id = {note.memory_id: note for note in notes}
        told = {by_id[memory_id]: state for memory_id, state in reached.items()}
        await self._outbox.told(told, now=self._clock())
        if waiting:
            await self._give_back([by_id[memory_id] for memory_id in waiting], "embedder")

    async def _embed(
        self, rows: Mapping[str, StoredRow]
    ) -> tuple[Sequence[str], dict[str, IndexState], Sequence[StoredRow]]:
        """Give the ids that wait for the embedder, what the others reach, and what to upsert."""
        waiting: list[str] = []
        try:
            embedded = await embed_missing(
                list(rows.values()), embedder=self._embedder, outbox=self._outbox
            )
        except EmbedderUnavailable as away:
            waiting = [memory_id for memory_id, row in rows.items() if row.vector is None]
            _log.warning("index_relay_waits_for_embedder", cause=away.cause, notes=len(waiting))
            embedded = await embed_missing(
                [row for row in rows.values() if row.vector is not None],
                embedder=self._embedder,
                outbox=self._outbox,
            )
        reached = {row.memory.memory_id: IndexState.SYNCED for row in embedded.usable}
        reached |= {row.memory.memory_id: IndexState.FAILED for row in embedded.hopeless}
        return waiting, reached, embedded.usable

    async def _outage(self, notes: Sequence[IndexNote], cause: str) -> None:
        """Give all back and let the index come to itself."""
        self._retry_in = wait = self._wait(self._outages)
        _log.warning("index_relay_outage", cause=cause, notes=len(notes), retry_in=wait)
        retry_at = self._clock() + timedelta(seconds=wait)
        await self._outbox.failed(notes, error=cause, retry_at=retry_at)

    async def _give_back(self, notes: Sequence[IndexNote], error: str) -> None:
        for note in notes:
            retry_at = self._clock() + timedelta(seconds=self._wait(note.attempt))
            await self._outbox.failed([note], error=error, retry_at=retry_at)

    async def _sit_out(self, what: str) -> None:
        self._outages += 1
        wait = self._wait(self._outages)
        _log.warning("index_relay_waits", what=what, retry_in=wait)
        await self._pause(wait, self._stopping)

    def _wait(self, attempt: int) -> float:
        """Give a wait with jitter: between half and all of the doubled time."""
        doubled = self._settings.first_wait * 2.0 ** min(attempt - 1, 20)
        return min(doubled, self._settings.longest_wait) * random.uniform(0.5, 1.0)  # noqa: S311

    async def _pause(self, seconds: float, until: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(seconds):
                await until.wait()
        except TimeoutError:
            pass

    async def _report_depth(self) -> None:
        now = self._clock()
        age = timedelta(seconds=self._settings.depth_every)
        if self._depth_time is None or now - self._depth_time >= age:
            self._depth_time = now
            self._on_depth(await self._outbox.depth())
