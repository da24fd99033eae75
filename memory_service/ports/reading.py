"""SQL: reading memories."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    UserState,
)
from memory_service.ports.types import Vector

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedQuery:
    """Which rows the pinned leg may bring."""

    scope: Scope
    now: datetime
    memory_types: frozenset[MemoryType] = frozenset()
    """Empty: all."""
    preference_limit: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UserView:
    """One consistent read of what a Retrieve needs from SQL whatever the query is."""

    state: UserState
    pinned: Sequence[Memory]
    """Candidates of the pinned leg, see MemoryReader.view; the constraints come first."""
    untold: Mapping[str, IndexState]
    """Memories about which the index may be out of date (PENDING) or will never know (FAILED)."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A memory and its embedding of one fingerprint; None if there is none yet."""

    memory: Memory
    vector: Vector | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """What ListMemories asks for; empty sets and text mean all."""

    memory_types: frozenset[MemoryType] = frozenset()
    statuses: frozenset[MemoryStatus] = frozenset()
    text: str = ""
    """Already normalised; a part of normalised title or content, never a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """Counts for GetStats, keyed by the words of the domain's enums."""

    revision: int
    active_by_type: Mapping[str, int]
    memories_by_status: Mapping[str, int]
    memories_by_index_state: Mapping[str, int]
    jobs_by_state: Mapping[str, int]
    oldest_job: datetime | None
    """When the oldest unfinished one was stored."""


class MemorySnapshot(Protocol):
    """Reads all of a user's memories at once. Raises StoreUnavailable when SQL does not answer."""

    async def copy(self, user_id: str, sink: Callable[[Iterator[Memory]], T]) -> T:
        """Give what sink makes of the user's memories in every status, by memory_id.

        They are as of one moment, and read as sink goes on. It runs in a thread, and again from the
        start when SQL fails in between.
        """
        ...


class MemoryReader(Protocol):
    """Reads memories. Raises StoreUnavailable when SQL does not answer."""

    async def view(self, wanted: PinnedQuery) -> UserView:
        """Give state, pinned rows and untold ids of one user in one snapshot.

        Pinned rows, all passing the user's gates (domain.gate) and the wanted types: every active
        constraint by importance desc, update_time desc, id desc; then the first preference_limit
        active preferences with confidence >= 0.8 in the same order.
        """
        ...

    async def best(self, wanted: PinnedQuery, *, limit: int) -> Sequence[Memory]:
        """Give active rows of any wanted type that pass the gates, for the legacy mode.

        Explicit first, then importance desc, update_time desc, id desc.
        """
        ...

    async def rows(
        self, user_id: str, *, fingerprint: str, limit: int
    ) -> tuple[Sequence[StoredRow], int]:
        """Give the user's active rows with embeddings, and how many there are in all.

        At most limit: explicit first, then importance desc, update_time desc, id desc.
        """
        ...

    async def changes(self, user_id: str, *, after: int, fingerprint: str) -> Sequence[StoredRow]:
        """Give rows in any status whose last change has a revision above after, by revision."""
        ...

    async def load(
        self, user_id: str, memory_ids: Sequence[str], *, fingerprint: str = ""
    ) -> Sequence[StoredRow]:
        """Give those of the ids that are this user's, in any status and in no promised order."""
        ...

    async def find_active(self, memory: Memory) -> Memory | None:
        """Give the active memory that holds the unique key which this memory would take."""
        ...

    async def page(
        self, user_id: str, wanted: MemoryFilter, *, before: str, limit: int
    ) -> Sequence[Memory]:
        """Give memories by memory_id desc with an id below before (empty: from the start)."""
        ...

    async def stats(self, user_id: str) -> StoreStats:
        """Count what is stored."""
        ...
