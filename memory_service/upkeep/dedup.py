"""Putting aside memories that say what another one says."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memory_service.domain.change import SYSTEM, Change
from memory_service.domain.duplicates import Duplicate, Said, covers, duplicates, said, united
from memory_service.domain.model import Memory, MemoryStatus, Operation
from memory_service.domain.write import with_status
from memory_service.ports import Clock, Due, MemoryFilter, MemoryReader, MemoryWriter, Transaction
from memory_service.upkeep.sweeping import Progress

DUPLICATE = "duplicate"
_ACTIVE = MemoryFilter(statuses=frozenset({MemoryStatus.ACTIVE}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dedup:
    """What the sweep needs, and in whose name it works.

    user_id: of this user only; empty: of all. dry_run: only tells what it would do. batch:
    memories or users at a time.
    """

    due: Due
    reader: MemoryReader
    writer: MemoryWriter
    clock: Clock
    actor: str = SYSTEM
    user_id: str = ""
    dry_run: bool = False
    batch: int = 200


async def sweep_duplicates(dedup: Dedup) -> AsyncIterator[Progress]:
    """Archive active memories that another active one covers (domain.duplicates), user by user.

    The one that stays takes what the other one had more of. Counts: users, memories, duplicates,
    archived, which is less where something changed meanwhile. Raises StoreUnavailable.
    """
    counts = Counter(users=0, memories=0, duplicates=0, archived=0)
    after = ""
    while users := await _users(dedup, after):
        for user_id in users:
            sayings = await _sayings(dedup, user_id, counts)
            found = duplicates(sayings)
            counts.update(users=1, duplicates=len(found))
            if not dedup.dry_run:
                counts["archived"] += await _archive(dedup, user_id, found)
            yield Progress(counts=dict(counts), user_id=user_id, found=tuple(found))
        after = users[-1]
    yield Progress(counts=dict(counts))


async def _users(dedup: Dedup, after: str) -> Sequence[str]:
    if dedup.user_id:
        return [dedup.user_id] if not after else []
    return await dedup.due.users(after=after, limit=dedup.batch)


async def _sayings(dedup: Dedup, user_id: str, counts: Counter[str]) -> list[Said]:
    sayings: list[Said] = []
    before = ""
    while rows := await dedup.reader.page(user_id, _ACTIVE, before=before, limit=dedup.batch):
        sayings += [saying for row in rows if (saying := said(row)) is not None]
        counts["memories"] += len(rows)
        before = rows[-1].memory_id
    return sayings


async def _archive(dedup: Dedup, user_id: str, found: Sequence[Duplicate]) -> int:
    archived = 0
    for start in range(0, len(found), dedup.batch):
        some = found[start : start + dedup.batch]
        work = partial(_put_aside, some=some, now=dedup.clock(), actor=dedup.actor)
        archived += await dedup.writer.change(user_id, work)
    return archived


def _put_aside(tx: Transaction, *, some: Sequence[Duplicate], now: datetime, actor: str) -> int:
    archived = 0
    for pair in some:
        one, kept = tx.get(pair.memory_id), tx.get(pair.kept)
        if one is None or kept is None or not _still(one, kept):
            continue
        tx.put(_change(one, with_status(one, MemoryStatus.ARCHIVED, now), actor))
        after = united(kept, one)
        if after != kept:
            tx.put(_change(kept, after, actor))
        archived += 1
    return archived


def _still(one: Memory, kept: Memory) -> bool:
    """Tell whether both are active and one of them is still covered by the other."""
    if not one.status is kept.status is MemoryStatus.ACTIVE:
        return False
    its, other = said(one), said(kept)
    if its is None or other is None:
        return False
    return its.words == other.words and covers(other.reach, its.reach)


def _change(before: Memory, after: Memory, actor: str) -> Change:
    operation = Operation.UPDATE if before.status is after.status else Operation.ARCHIVE
    return Change(operation=operation, actor=actor, reason=DUPLICATE, before=before, after=after)
