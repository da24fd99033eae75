"""What happened to memories, and going back to what they were."""

from collections.abc import Callable, Sequence

from memory_service.domain.change import PastChange
from memory_service.domain.errors import VersionNotFound
from memory_service.domain.model import Memory
from memory_service.domain.text import indexed_text
from memory_service.domain.write import counterpart, reverted
from memory_service.ports import (
    Clock,
    MemoryHistory,
    MemoryWriter,
    RequestKey,
    Transaction,
)
from memory_service.remember.embedding import Embedding
from memory_service.remember.steps import found, replace_by

REVERTED = "reverted"


class History:
    """Lists changes, and undoes any of them by going back to a version."""

    def __init__(
        self,
        history: MemoryHistory,
        writer: MemoryWriter,
        embedding: Embedding,
        *,
        clock: Clock,
    ) -> None:
        self._history = history
        self._writer = writer
        self._embedding = embedding
        self._clock = clock

    async def page(
        self, user_id: str, memory_id: str, *, before: int, size: int
    ) -> Sequence[PastChange]:
        """Give a page, newest first, and one change more unless it is the last page.

        memory_id empty: the changes of all memories of the user.
        """
        return await self._history.page(user_id, memory_id, before=before, limit=size + 1)

    async def revert(
        self,
        user_id: str,
        memory_id: str,
        version: int,
        key: RequestKey,
        encode: Callable[[Memory], bytes],
    ) -> bytes:
        """Give a memory the values and the status that it had at a version, as a new version.

        If it was superseded and comes back, the active memory that stands in its place is
        superseded by it, and the other way round: the two change places.

        Raises MemoryNotFound, VersionNotFound, and EqualMemoryExists if another active memory says
        what it would say.
        """
        now = self._clock()
        then = await self._history.version(user_id, memory_id, version)
        vectors = await self._embedding.vectors([] if then is None else [then])

        def work(tx: Transaction) -> bytes:
            before = found(tx, memory_id)
            if then is None:
                raise VersionNotFound
            after = reverted(before, then, now)
            # The same words have their embedding already.
            vector = vectors[0] if indexed_text(before) != indexed_text(after) else None
            fingerprint = self._embedding.fingerprint
            other = _in_its_place(tx, before, after)
            moved = counterpart(before, after, other) if other else None
            if other and moved:
                replace_by(tx, other, moved, None, fingerprint, reason=REVERTED)
            return encode(replace_by(tx, before, after, vector, fingerprint, reason=REVERTED))

        return await self._writer.once(user_id, key, work)


def _in_its_place(tx: Transaction, before: Memory, after: Memory) -> Memory | None:
    """Give the memory that stands in the place of one, perhaps over several that came between."""
    seen = {before.memory_id}
    other = tx.get(before.superseded_by or after.superseded_by)
    while other is not None and other.superseded_by and other.superseded_by not in seen:
        seen.add(other.memory_id)
        other = tx.get(other.superseded_by)
    return other
