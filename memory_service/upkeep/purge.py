"""Removing for good what was deleted long ago, and what was kept for a while only."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from memory_service.domain.change import SYSTEM
from memory_service.ports import Clock, Due, Forgetting, MemoryRef, MemoryWriter, Transaction
from memory_service.upkeep.sweeping import Progress, by_user

PURGED = "purged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """What the purge needs, in whose name it works, and how long things are kept.

    end_erasure ends an EraseUser that broke off, of a user under a request_id.
    """

    due: Due
    forgetting: Forgetting
    writer: MemoryWriter
    clock: Clock
    end_erasure: Callable[[str, str], Awaitable[object]]
    actor: str = SYSTEM
    deleted_kept: timedelta = timedelta(days=30)
    answers_kept: timedelta = timedelta(days=7)
    jobs_kept: timedelta = timedelta(days=30)
    erasure_time: timedelta = timedelta(minutes=10)
    """An erasure that takes longer is taken for broken off; ending it twice does no harm."""
    batch: int = 200


async def purge(parts: Purge) -> AsyncIterator[Progress]:
    """Remove what is old enough.

    Deleted memories leave every table: a deleted row, its embeddings, and its words in history,
    done jobs and kept answers; the index is told. Done jobs never outlive the words of a memory
    that was learnt from them. Counts: erasures, memories, answers, jobs. Raises StoreUnavailable.
    """
    counts = Counter(erasures=0, memories=0, answers=0, jobs=0)
    now = parts.clock()
    broken_off = now - parts.erasure_time
    for user_id, request_id in await parts.due.erasures(before=broken_off, limit=parts.batch):
        await parts.end_erasure(user_id, request_id)
        counts["erasures"] += 1
        yield Progress(counts=dict(counts))
    before = now - parts.deleted_kept
    while refs := await parts.due.deleted(before=before, limit=parts.batch):
        removed = await _remove(parts, refs)
        counts["memories"] += removed
        yield Progress(counts=dict(counts))
        if not removed:
            break
    forgetting = parts.forgetting
    jobs_kept = min(parts.jobs_kept, parts.deleted_kept)
    for kind, forget, kept in (
        ("answers", forgetting.requests, parts.answers_kept),
        ("jobs", forgetting.jobs, jobs_kept),
    ):
        while forgotten := await forget(before=now - kept, limit=parts.batch):
            counts[kind] += forgotten
            yield Progress(counts=dict(counts))
    yield Progress(counts=dict(counts))


async def _remove(parts: Purge, refs: Sequence[MemoryRef]) -> int:
    """Remove memories that are still deleted; 0: others were faster."""
    before = parts.clock() - parts.deleted_kept
    removed = 0
    for user_id, memory_ids in by_user(refs).items():

        def work(tx: Transaction, memory_ids: Sequence[str]) -> int:
            return tx.removal.purge(memory_ids, before=before, actor=parts.actor, reason=PURGED)

        removed += await parts.writer.change(user_id, partial(work, memory_ids=memory_ids))
    return removed
