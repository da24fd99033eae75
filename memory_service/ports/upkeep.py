"""SQL: finding what has had its time, of all users."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """One memory of one user."""

    user_id: str
    memory_id: str


class Due(Protocol):
    """Finds memories and erasures that upkeep has to see to, some at a time.

    What is found may be gone or changed a moment later: whoever acts looks again, under the user's
    lock. Raises StoreUnavailable when SQL does not answer.
    """

    async def users(self, *, after: str, limit: int) -> Sequence[str]:
        """Give users with an id above after, by id, of whom anything was ever stored."""
        ...

    async def expired(self, *, now: datetime, limit: int) -> Sequence[MemoryRef]:
        """Give memories that are not deleted and whose expire_time is not after now."""
        ...

    async def retentions(self, *, after: str, limit: int) -> Sequence[tuple[str, timedelta]]:
        """Give users with an id above after, by id, who set a retention, and how long it is."""
        ...

    async def unchanged(self, user_id: str, *, since: datetime, limit: int) -> Sequence[MemoryRef]:
        """Give memories of a user that are not deleted and did not change after that time."""
        ...

    async def deleted(self, *, before: datetime, limit: int) -> Sequence[MemoryRef]:
        """Give memories that were deleted before a time, oldest first."""
        ...

    async def erasures(self, *, before: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """Give users whose erasure began before a time and has not ended, and its request_id."""
        ...


class Forgetting(Protocol):
    """Removes what was kept for a while only. Raises StoreUnavailable."""

    async def requests(self, *, before: datetime, limit: int) -> int:
        """Forget answers kept since before a time, at most limit; gives how many."""
        ...

    async def jobs(self, *, before: datetime, limit: int) -> int:
        """Forget done jobs stored before a time, with what was said in them; gives how many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexView:
    """What the index should hold of a user, as far as SQL knows.

    settled: what it is to hold (Memory.is_indexed) and was told of, or nobody will tell it of.
    waiting: memories that it is yet to be told about, so it may hold them or not.
    """

    settled: frozenset[str]
    waiting: frozenset[str]


class IndexAudit(Protocol):
    """Compares SQL with the index. Raises StoreUnavailable."""

    async def view(self, user_id: str) -> IndexView:
        """Say what the index should hold; memories that cannot be indexed are in neither set."""
        ...

    async def remind(self, user_id: str, memory_ids: Sequence[str], *, now: datetime) -> None:
        """Note that the index has to be told about these, whether they are memories or not."""
        ...
