"""What the use cases need from the outside world, as Protocols.

Every port has a fake in tests/fakes and at least one adapter; all pass the same contract suite.
Waiting happens only here: each method is bounded in time by its adapter or by its caller.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.model import (
    Change,
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    UserSettings,
    UserState,
)

Vector = NDArray[np.float32]
"""Unit length, one dimension; a matrix of them has one row per text."""

Clock = Callable[[], datetime]
"""Gives now, aware and in UTC."""

NewId = Callable[[], str]
"""Gives an id that sorts after those given before in this process and is never used twice."""


# ---------------------------------------------------------------- SQL: reading


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

    async def page(
        self, user_id: str, wanted: MemoryFilter, *, before: str, limit: int
    ) -> Sequence[Memory]:
        """Give memories by memory_id desc with an id below before (empty: from the start)."""
        ...

    async def stats(self, user_id: str) -> StoreStats:
        """Count what is stored."""
        ...


# ---------------------------------------------------------------- SQL: writing


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Makes a mutation happen once: the client's id, the RPC, and a digest of the request."""

    request_id: str
    rpc: str
    digest: bytes


class Transaction(Protocol):
    """One user's write transaction, holding the user's lock; plain calls in the adapter's thread.

    Opening it raised the user's revision; what is put here carries the new one.
    """

    @property
    def state(self) -> UserState:
        """The user's state with the new revision."""
        ...

    def get(self, memory_id: str) -> Memory | None:
        """Give this user's memory in any status."""
        ...

    def find_active(self, memory: Memory) -> Memory | None:
        """Give the active memory that holds the unique key which this memory would take."""
        ...

    def put(self, change: Change, vector: Vector | None = None, fingerprint: str = "") -> Memory:
        """Insert or replace the row, with history and a note for the index, and give it as stored.

        The stored row carries the transaction's revision and index state PENDING. If its indexed
        text differs from before, older embeddings go; a vector given is kept under fingerprint.
        """
        ...

    def set_settings(self, settings: UserSettings) -> UserState:
        """Store the settings."""
        ...


class MemoryWriter(Protocol):
    """Writes memories. Raises StoreUnavailable when SQL does not answer."""

    async def once(
        self, user_id: str, key: RequestKey, work: Callable[[Transaction], bytes]
    ) -> bytes:
        """Run work in one transaction and give its answer; the same key again gives it again.

        A deadlock, a lock time-out or a connection lost before the commit runs the whole
        transaction again, a bounded number of times. An error raised by work rolls all back and
        keeps nothing. Raises RequestIdReused when the request_id stands for another RPC or digest.
        """
        ...

    async def touch(self, memory_ids: Mapping[str, datetime]) -> None:
        """Note when memories were last recalled; no new version, no new revision."""
        ...


# ---------------------------------------------------------------- the vector index


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


# ---------------------------------------------------------------- the embedder


class Embedder(Protocol):
    """Turns texts into unit vectors. Raises EmbedderUnavailable when it does not answer."""

    @property
    def fingerprint(self) -> str:
        """Model, version and dims, as [a-z0-9_]{1,64}; names collection and stored vectors."""
        ...

    @property
    def dims(self) -> int:
        """Length of a vector."""
        ...

    @property
    def lexical(self) -> bool:
        """Tell whether it only compares spelling, so that paraphrases are not found."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix for questions."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix for memories."""
        ...


# ---------------------------------------------------------------- telling the index


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


# ---------------------------------------------------------------- collections and backfill


class Collections(Protocol):
    """Which collections exist for which fingerprint, and what a backfill has to write."""

    async def ready(self, collection: str) -> bool:
        """Tell whether the collection holds all active memories. An empty store's is at once."""
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
        """Give active memories of all users by memory_id asc, with ids above after."""
        ...

    async def count(self) -> int:
        """Count the active memories of all users."""
        ...
