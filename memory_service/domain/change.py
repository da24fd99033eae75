"""What a change of a memory is, as history keeps it."""

from dataclasses import dataclass

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
