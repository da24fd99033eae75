"""SQL: removing rows for good."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from memory_service.domain.erasure import Store

Counts = Mapping[Store, int]
"""Rows removed, or emptied of content; a store that is missing counts as 0."""


class Removal(Protocol):
    """Removing a user's rows inside a write transaction: Transaction.removal. Plain calls.

    A removed memory leaves a note for the index, which holds ids and no content.
    """

    def begin(self, request_id: str) -> Counts:
        """Mark the user as erased now: jobs, kept answers and settings go, and memory is off.

        So nothing is found or learnt until finish, whatever happens in between.
        """
        ...

    def some(self, limit: int) -> Counts:
        """Remove up to limit memories in any status with all that hangs on them."""
        ...

    def finish(self) -> Counts:
        """Remove older changes of no memory, and let the user begin anew with default settings."""
        ...

    def purge(self, memory_ids: Sequence[str], *, before: datetime, actor: str, reason: str) -> int:
        """Remove those of the memories that were deleted before a time; gives how many.

        Their changes stay in history without words, and an ERASE follows them. An answer kept for
        a request that names them is emptied.
        """
        ...
