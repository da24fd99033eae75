"""Comparing SQL with the index both ways, and having the index told where they differ."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from memory_service.domain.errors import IndexUnavailable
from memory_service.ports import Clock, Collections, Due, IndexAudit, VectorIndex
from memory_service.upkeep.sweeping import Progress

_REINDEXING = "reindexing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconcile:
    """What is compared; user_id: of this user only, empty: of all."""

    due: Due
    audit: IndexAudit
    index: VectorIndex
    collections: Collections
    collection: str
    clock: Clock
    user_id: str = ""
    batch: int = 200


async def reconcile(parts: Reconcile) -> AsyncIterator[Progress]:
    """Find drift, user by user, and note for the relay that the index has to be told.

    Counts: users; missing, active memories that the index lacks; orphaned, what it holds and must
    not. Whatever a relay or a writer touches meanwhile is left to them. A user whom SQL never knew
    is not looked for. Raises StoreUnavailable, and IndexUnavailable, with cause "reindexing" while
    a backfill is at work: until its end the index lacks what nobody has lost.
    """
    if not await parts.collections.ready(parts.collection):
        raise IndexUnavailable(_REINDEXING)
    counts = Counter(users=0, missing=0, orphaned=0)
    after = ""
    while users := await _users(parts, after):
        for user_id in users:
            await _compare(parts, user_id, counts)
            yield Progress(counts=dict(counts), user_id=user_id)
        after = users[-1]
    yield Progress(counts=dict(counts))


async def _users(parts: Reconcile, after: str) -> Sequence[str]:
    if parts.user_id:
        return [parts.user_id] if not after else []
    return await parts.due.users(after=after, limit=parts.batch)


async def _compare(parts: Reconcile, user_id: str, counts: Counter[str]) -> None:
    """Look at the index between two looks at SQL, so that only what stood still counts."""
    first = await parts.audit.view(user_id)
    held = await parts.index.ids(user_id)
    second = await parts.audit.view(user_id)
    missing = (first.settled & second.settled) - held
    orphaned = held - first.settled - second.settled - first.waiting - second.waiting
    if missing or orphaned:
        drift = sorted(missing | orphaned)
        await parts.audit.remind(user_id, drift, now=parts.clock())
    counts.update(users=1, missing=len(missing), orphaned=len(orphaned))
