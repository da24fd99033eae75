"""What a change of a memory is, as history keeps it."""

from dataclasses import dataclass
from datetime import datetime

from memory_service.domain.ingest import Decision
from memory_service.domain.model import Memory, Operation

USER = "user"
SYSTEM = "system"
OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one memory.

    actor is USER, SYSTEM or OPERATOR. before is None for a new memory, decision for a change by
    hand.
    """

    operation: Operation
    actor: str
    reason: str
    before: Memory | None
    after: Memory
    decision: Decision | None = None

    @property
    def concerns_index(self) -> bool:
        """Tell whether the vector index has to be told; of what only supports it never knows."""
        before = self.before is not None and not self.before.supports_only
        return before or not self.after.supports_only


@dataclass(frozen=True, slots=True, kw_only=True)
class PastChange:
    """One change as history keeps it; entry_id orders all changes of a user.

    before and after are both None once the memory's words are removed for good.
    """

    entry_id: int
    memory_id: str
    version: int
    revision: int
    operation: Operation
    actor: str
    reason: str
    before: Memory | None
    after: Memory | None
    decision: Decision | None
    create_time: datetime
