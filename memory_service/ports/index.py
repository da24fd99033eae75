"""The vector index, and what it has to be told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memory_service.domain.model import IndexState, MemoryType
from memory_service.ports.reading import StoredRow
from memory_service.ports.types import Vector


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A row that the index found: cosine of query and row, in -1..1."""

    memory_id: str
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFilter:
    """Whose rows may be found, and the gates that the index has columns for."""

    user_id: str
    now: datetime
    assistant_id: str = ""
    run_id: str = ""
    explicit_only: bool = False
    max_sensitivity: int = 2
    memory_types: frozenset[MemoryType] = frozenset()
    """Empty: all."""


class VectorIndex(Protocol):
    """Vectors of active memories, derived from SQL. Raises IndexUnavailable when it is silent."""

    async def search(
        self, vector: Vector, wanted: IndexFilter, *, limit: int
    ) -> Sequence[IndexHit]:
        """Give the nearest rows, nearest first.

        Raises IndexUnavailable, with cause "reindexing" until the collection is ready.
        """
        ...

    async def upsert(self, rows: Sequence[StoredRow]) -> None:
        """Write rows, each with a finite vector that is not zero; found by search afterwards."""
        ...

    async def remove(self, memory_ids: Sequence[str]) -> None:
        """Take rows out; unknown ids are fine."""
        ...

    async def ids(self, user_id: str) -> frozenset[str]:
        """Give all ids that the index holds of a user, for tests and reconcile."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNote:
    """A memory that the index has to be told about; token fences a relay whose lease ran out."""

    user_id: str
    memory_id: str
    token: str
    attempt: int


class IndexOutbox(Protocol):
    """What the index still has to be told. Raises StoreUnavailable when SQL does not answer."""

    async def claim(self, *, limit: int, lease: float, now: datetime) -> Sequence[IndexNote]:
        """Take due notes for lease seconds, oldest first; two relays never hold the same one."""
        ...

    async def told(self, notes: Mapping[IndexNote, IndexState], *, now: datetime) -> int:
        """Mark notes as done with the state reached, and give how many of them were.

        A note whose memory changed since the claim, or whose lease ran out, stays to be told again.
        """
        ...

    async def failed(self, notes: Sequence[IndexNote], *, error: str, retry_at: datetime) -> None:
        """Give notes back, to be claimed again at retry_at."""
        ...

    async def settle(self, *, before: datetime) -> int:
        """Forget done notes told before that time: from then on searches see them for sure."""
        ...

    async def depth(self) -> int:
        """Count the notes not told yet."""
        ...

    async def store_vectors(
        self,
        vectors: Mapping[str, Vector],
        *,
        fingerprint: str,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        """Keep embeddings that were missing, by memory_id.

        versions: those of the memories whose texts were embedded. One that changed since then is
        left out: its embedding would be of words that it no longer says.
        """
        ...

    async def load_any(
        self, notes: Sequence[IndexNote], *, fingerprint: str
    ) -> Sequence[StoredRow]:
        """Give the claimed memories as they are now, whoever owns them, without purged ones."""
        ...


class Collections(Protocol):
    """Which collections exist for which fingerprint, and what a backfill has to write."""

    async def ready(self, collection: str) -> bool:
        """Tell whether the collection holds all that it is to hold; nothing is held at once."""
        ...

    async def mark_ready(self, collection: str) -> None:
        """Say that its backfill is complete."""
        ...

    async def take_over(self, collection: str) -> None:
        """Say that from now on only this collection is told of changes.

        No other one is ready any more: going back to it takes a backfill.
        """
        ...

    async def mark_lost(self, collection: str) -> None:
        """Say that the index was found without it: not ready until a backfill is complete.

        Nothing changes while the index was never told of any active memory (none is SYNCED): all
        of them are still in the outbox, so the relay fills the new collection.
        """
        ...

    async def batch(self, *, after: str, limit: int, fingerprint: str) -> Sequence[StoredRow]:
        """Give what the index is to hold (Memory.is_indexed) of all users, by memory_id asc.

        Only ids above after.
        """
        ...

    async def count(self) -> int:
        """Count what the index is to hold of all users."""
        ...
