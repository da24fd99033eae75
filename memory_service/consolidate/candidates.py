"""The memories that a fact is compared with."""

from collections.abc import Sequence

from memory_service.domain.decide import Offer, is_comparable
from memory_service.domain.model import Memory, Scope
from memory_service.ports import Embedder
from memory_service.retrieve import Alike, AlikeRows

MOST_OFFERED = 20


class Candidates:
    """Recalls them; the embedder says from which cosine on two statements may be of one matter."""

    def __init__(self, rows: AlikeRows, embedder: Embedder) -> None:
        self._rows = rows
        self._embedder = embedder

    async def like(self, fact: Memory) -> Sequence[Offer]:
        """Give up to MOST_OFFERED memories by relevance, those that settings hide too.

        Of a row without an embedding, and while the embedder is down, words tell alone. Raises
        StoreUnavailable.
        """
        scope = Scope(user_id=fact.user_id, assistant_id=fact.assistant_id, run_id=fact.run_id)
        found = await self._rows.find(
            scope, fact.content, lambda memory: is_comparable(fact, memory)
        )
        near = [row for row in found if self._is_near(row)]
        return [Offer(row.memory, row.relevance) for row in near[:MOST_OFFERED]]

    def _is_near(self, row: Alike) -> bool:
        if row.cosine is None:
            return row.relevance > 0
        return row.cosine >= self._embedder.likeness_floor
