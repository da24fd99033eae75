"""Which memories a request may recall; the SQL queries apply the same rules (SPEC_MEMORY 4)."""

from dataclasses import dataclass
from datetime import datetime

from memory_service.domain.lifetime import end_of
from memory_service.domain.model import Memory, MemoryStatus, MemoryType, Scope, UserSettings


@dataclass(frozen=True, slots=True)
class Gate:
    """Whose request, what the user allows, when, and which types are wanted (empty: all)."""

    scope: Scope
    settings: UserSettings
    now: datetime
    memory_types: frozenset[MemoryType] = frozenset()


def allows(gate: Gate, memory: Memory) -> bool:
    """Tell whether the memory may be recalled: all the gates, and not the assistant's words."""
    return not memory.supports_only and counts(gate, memory)


def counts(gate: Gate, memory: Memory) -> bool:
    """Tell whether the memory may be recalled or, if it only supports, lift its neighbours."""
    settings = gate.settings
    return (
        settings.memory_enabled
        and memory.user_id == gate.scope.user_id
        and memory.status is MemoryStatus.ACTIVE
        and (memory.is_explicit or settings.implicit_memory_enabled)
        and (memory.sensitivity_level == 0 or settings.sensitive_memory_enabled)
        and _in_scope(gate.scope, memory)
        and _type_wanted(gate, memory.memory_type)
        and end_of(memory, now=gate.now, retention=settings.retention) is None
    )


def _in_scope(scope: Scope, memory: Memory) -> bool:
    """Admit rows of that assistant and run, and rows of none; a request without them sees all."""
    return (not scope.assistant_id or memory.assistant_id in ("", scope.assistant_id)) and (
        not scope.run_id or memory.run_id in ("", scope.run_id)
    )


def _type_wanted(gate: Gate, memory_type: MemoryType) -> bool:
    """Count an unknown type as a fact."""
    counted = MemoryType.FACT if memory_type is MemoryType.UNKNOWN else memory_type
    return counted not in gate.settings.disabled_types and (
        not gate.memory_types or counted in gate.memory_types
    )
