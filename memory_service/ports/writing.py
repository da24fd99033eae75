"""SQL: writing memories."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, Self, TypeVar

from memory_service.domain.change import Change
from memory_service.domain.model import Memory, UserSettings, UserState
from memory_service.ports.jobs import JobRows
from memory_service.ports.removal import Removal
from memory_service.ports.types import Vector

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Makes a mutation happen once: the client's id, the RPC, and a digest of the request."""

    request_id: str
    rpc: str
    digest: bytes

    def part(self, name: object) -> Self:
        """Give the key of a part of the request; no client meets it by chance."""
        hashed = hashlib.sha256(self.request_id.encode()).hexdigest()
        return replace(self, request_id=f"{hashed}:{name}")


class Transaction(Protocol):
    """One user's write transaction, holding the user's lock; plain calls in the adapter's thread.

    Opening it raised the user's revision; what is put here carries the new one.
    """

    @property
    def state(self) -> UserState:
        """The user's state with the new revision."""
        ...

    @property
    def jobs(self) -> JobRows:
        """The user's jobs."""
        ...

    @property
    def removal(self) -> Removal:
        """Removing the user's rows for good."""
        ...

    def get(self, memory_id: str) -> Memory | None:
        """Give this user's memory in any status."""
        ...

    def find_active(self, memory: Memory) -> Memory | None:
        """Give the active memory that holds the unique key which this memory would take."""
        ...

    def changes(self, after: int) -> Sequence[Memory]:
        """Give memories in any status whose last change has a revision above after, by revision."""
        ...

    def put(self, change: Change, vector: Vector | None = None, fingerprint: str = "") -> Memory:
        """Insert or replace the row, with history and a note for the index, and give it as stored.

        The stored row carries the transaction's revision and index state PENDING; REMOVED, and no
        note, if the index never has to know it (Memory.supports_only). If its indexed text differs
        from before, older embeddings go; a vector given is kept under fingerprint.
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

    async def change(self, user_id: str, work: Callable[[Transaction], T]) -> T:
        """Run work in one transaction that no request asked for, and give what it gives.

        Runs again as once does, also after a connection lost while committing: work must see by
        what is stored that it was done before.
        """
        ...

    async def answered(self, user_id: str, request_id: str) -> bool:
        """Tell whether an answer is kept under this id, whatever was asked."""
        ...

    async def touch(self, memory_ids: Mapping[str, datetime]) -> None:
        """Note when memories were last recalled; no new version, no new revision."""
        ...
