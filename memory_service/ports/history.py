"""SQL: reading what happened to memories."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_service.domain.change import PastChange
from memory_service.domain.model import Memory, UserState


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What changed since a revision, by entry_id asc, and the user's state at that moment.

    complete: no later change of the user was left out.
    """

    state: UserState
    changes: Sequence[PastChange]
    complete: bool


class MemoryHistory(Protocol):
    """Reads a user's changes. Raises StoreUnavailable when SQL does not answer."""

    async def page(
        self, user_id: str, memory_id: str, *, before: int, limit: int
    ) -> Sequence[PastChange]:
        """Give changes by entry_id desc with an entry_id below before (0: from the start).

        memory_id empty: those of all memories of the user.
        """
        ...

    async def version(self, user_id: str, memory_id: str, version: int) -> Memory | None:
        """Give a memory as it was at a version; None if that is not known, or no more."""
        ...

    async def news(self, user_id: str, *, after: int, limit: int) -> News:
        """Give changes with a revision above after, in one snapshot, never part of a revision.

        At most limit of them, but always the first revision whole, however many changes it made.
        """
        ...
