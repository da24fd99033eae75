"""Filling a collection from SQL: for a new embedder, or because the index lost it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import structlog

from memory_service.domain.errors import EmbedderUnavailable, IndexUnavailable, StoreUnavailable
from memory_service.ports import Collections, Embedder, IndexOutbox, StoredRow, VectorIndex
from memory_service.upkeep.embedding import embed_missing

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """What a collection is filled from, and how."""

    collection: str
    collections: Collections
    outbox: IndexOutbox
    index: VectorIndex
    embedder: Embedder
    batch: int = 200
    visible_after: float = 0.0
    """Seconds by which a search may be behind; waited for before the collection is ready."""
    retry_after: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a backfill is; after: where to resume it."""

    done: int
    total: int
    unusable: int
    """Memories whose words have no usable vector; keywords find them."""
    after: str
    ready: bool


async def reindex(backfill: Backfill, *, after: str = "") -> AsyncIterator[Progress]:
    """Write all active memories with ids above after, then mark the collection as ready.

    Safe beside relays and other backfills: a memory that changed while it was written is written
    again or removed, and later changes are the relay's. Embeddings made are kept, so starting
    again costs no embedder. Processes with another embedder must be gone by then: what they told
    went to their own collection. Raises IndexUnavailable, EmbedderUnavailable or StoreUnavailable,
    to be resumed at the last progress.
    """
    await backfill.collections.take_over(backfill.collection)
    total = await backfill.collections.count()
    done = unusable = 0
    while rows := await _batch(backfill, after, backfill.batch):
        unusable += await _copy(backfill, after, rows)
        done += len(rows)
        after = rows[-1].memory.memory_id
        yield Progress(
            done=done, total=max(total, done), unusable=unusable, after=after, ready=False
        )
    await asyncio.sleep(backfill.visible_after)
    await backfill.collections.mark_ready(backfill.collection)
    yield Progress(done=done, total=max(total, done), unusable=unusable, after=after, ready=True)


async def keep_ready(backfill: Backfill, *, every: float = 10.0) -> None:
    """Look every so many seconds whether the collection is ready, and fill it if not; endless.

    From the first look on no other collection counts as ready: this process's relay tells this one.
    """
    while True:
        try:
            await backfill.collections.take_over(backfill.collection)
            if not await backfill.collections.ready(backfill.collection):
                await _fill(backfill)
        except StoreUnavailable:
            _log.warning("reindex_waits", cause="store")
        await asyncio.sleep(every)


async def _fill(backfill: Backfill) -> None:
    """Fill the collection through outages, each time from where it was."""
    after = ""
    while True:
        try:
            async for progress in reindex(backfill, after=after):
                after = progress.after
                _log.info(
                    "reindex",
                    collection=backfill.collection,
                    done=progress.done,
                    total=progress.total,
                    ready=progress.ready,
                )
        except (IndexUnavailable, EmbedderUnavailable) as away:
            _log.warning("reindex_waits", cause=away.cause)
            await asyncio.sleep(backfill.retry_after)
        else:
            return


async def _copy(backfill: Backfill, after: str, rows: Sequence[StoredRow]) -> int:
    """Write rows until none of them changed meanwhile; gives how many have no usable vector."""
    unusable: set[str] = set()
    last = rows[-1].memory.memory_id
    while rows:
        embedded = await embed_missing(rows, embedder=backfill.embedder, outbox=backfill.outbox)
        hopeless = {row.memory.memory_id for row in embedded.hopeless}
        unusable = (unusable - _ids(rows)) | hopeless
        if embedded.usable:
            await backfill.index.upsert(embedded.usable)
        # What was read may be out of date by now, and a relay may have been here before us.
        limit = 2 * backfill.batch
        current = await _batch(backfill, after, limit)
        seen_to = current[-1].memory.memory_id if len(current) == limit else last
        versions = {row.memory.memory_id: row.memory.version for row in rows}
        gone = {one for one in versions.keys() - _ids(current) if one <= seen_to}
        await backfill.index.remove(sorted(gone | hopeless))
        unusable -= gone
        rows = [
            row
            for row in current
            if row.memory.memory_id <= last
            and versions.get(row.memory.memory_id, row.memory.version) != row.memory.version
        ]
    return len(unusable)


async def _batch(backfill: Backfill, after: str, limit: int) -> Sequence[StoredRow]:
    fingerprint = backfill.embedder.fingerprint
    return await backfill.collections.batch(after=after, limit=limit, fingerprint=fingerprint)


def _ids(rows: Sequence[StoredRow]) -> set[str]:
    return {row.memory.memory_id for row in rows}
