"""Deleting memories whose time is over, whatever their status."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memory_service.domain.change import SYSTEM, Change
from memory_service.domain.lifetime import End, end_of
from memory_service.domain.model import MemoryStatus, Operation
from memory_service.domain.write import with_status
from memory_service.ports import Clock, Due, MemoryRef, MemoryWriter, Transaction
from memory_service.upkeep.sweeping import Progress, by_user


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What the sweep needs, and in whose name it works; batch: memories at a time."""

    due: Due
    writer: MemoryWriter
    clock: Clock
    actor: str = SYSTEM
    batch: int = 200


async def sweep_expired(expiry: Expiry) -> AsyncIterator[Progress]:
    """Mark as deleted what has expired, and what did not change for its user's retention.

    Retrieve has hidden it since its time was over; from now on it can be purged. Counts: expired,
    retention. Safe beside writers and other sweeps. Raises StoreUnavailable.
    """
    counts = Counter({end.value: 0 for end in End})
    while refs := await expiry.due.expired(now=expiry.clock(), limit=expiry.batch):
        done = await _end(expiry, refs)
        counts.update(done)
        yield Progress(counts=dict(counts))
        if not done:
            break
    after = ""
    while users := await expiry.due.retentions(after=after, limit=expiry.batch):
        for user_id, retention in users:
            since = expiry.clock() - retention
            while refs := await expiry.due.unchanged(user_id, since=since, limit=expiry.batch):
                done = await _end(expiry, refs)
                counts.update(done)
                if not done:
                    break
        after = users[-1][0]
        yield Progress(counts=dict(counts))
    yield Progress(counts=dict(counts))


async def _end(expiry: Expiry, refs: Sequence[MemoryRef]) -> Counter[str]:
    """Delete those of the memories whose time is over; none: others were faster."""
    done: Counter[str] = Counter()
    for user_id, memory_ids in by_user(refs).items():
        work = partial(_delete, memory_ids=memory_ids, now=expiry.clock(), actor=expiry.actor)
        done.update(await expiry.writer.change(user_id, work))
    return done


def _delete(
    tx: Transaction, *, memory_ids: Sequence[str], now: datetime, actor: str
) -> Counter[str]:
    done: Counter[str] = Counter()
    for memory_id in memory_ids:
        before = tx.get(memory_id)
        if before is None or before.status is MemoryStatus.DELETED:
            continue
        end = end_of(before, now=now, retention=tx.state.settings.retention)
        if end is None:
            continue
        after = with_status(before, MemoryStatus.DELETED, now)
        tx.put(
            Change(
                operation=Operation.DELETE,
                actor=actor,
                reason=end.value,
                before=before,
                after=after,
            )
        )
        done[end.value] += 1
    return done
