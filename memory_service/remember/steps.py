"""What happens to a memory inside a write transaction."""

from memory_service.domain.change import USER, Change
from memory_service.domain.errors import EqualMemoryExists, MemoryNotFound
from memory_service.domain.model import Memory, MemoryStatus, Operation
from memory_service.domain.write import Stored, check_allowed, operation_of, refreshed
from memory_service.ports import Transaction, Vector

BY_HAND = "by_hand"
SAME_HASH = "same_hash"
NO_SUCH_MEMORY = "the user has no such memory"


def found(tx: Transaction, memory_id: str) -> Memory:
    """Give this user's memory in any status. Raises MemoryNotFound."""
    memory = tx.get(memory_id)
    if memory is None:
        raise MemoryNotFound(NO_SUCH_MEMORY)
    return memory


def store(tx: Transaction, memory: Memory, vector: Vector | None, fingerprint: str) -> Stored:
    """Store a new memory, or refresh the equal one. Raises MemoryNotAllowed."""
    check_allowed(tx.state.settings, memory)
    before = tx.find_active(memory)
    if before is not None:
        return Stored(tx.put(change(before, refreshed(before, memory), SAME_HASH)), created=False)
    return Stored(tx.put(change(None, memory), vector, fingerprint), created=True)


def replace_by(
    tx: Transaction,
    before: Memory,
    after: Memory,
    vector: Vector | None,
    fingerprint: str,
    *,
    reason: str = BY_HAND,
) -> Memory:
    """Replace a memory. Raises EqualMemoryExists if another active memory says what it will."""
    if after.status is MemoryStatus.ACTIVE:
        equal = tx.find_active(after)
        if equal is not None and equal.memory_id != after.memory_id:
            message = "another active memory says the same"
            raise EqualMemoryExists(message)
    return tx.put(change(before, after, reason), vector, fingerprint)


def change(before: Memory | None, after: Memory, reason: str = BY_HAND) -> Change:
    """Say what was done by the user's hand, as history keeps it."""
    operation = Operation.CREATE if before is None else operation_of(before, after)
    return Change(operation=operation, actor=USER, reason=reason, before=before, after=after)
