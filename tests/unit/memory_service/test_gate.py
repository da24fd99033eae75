"""Gates: what may be recalled, one rule at a time."""

from datetime import timedelta

import pytest

from memory_service.domain.gate import Gate, allows, counts
from memory_service.domain.model import (
    Memory,
    MemoryStatus,
    MemoryType,
    Role,
    Scope,
    UserSettings,
)
from tests.builders.memories import NOW, SCOPE, memory

OPEN = Gate(SCOPE, UserSettings(), NOW)
TICK = timedelta(microseconds=1)


def gate(settings: UserSettings | None = None, *types: MemoryType) -> Gate:
    return Gate(SCOPE, settings or UserSettings(), NOW, frozenset(types))


def test_an_active_memory_of_the_user_is_allowed() -> None:
    assert allows(OPEN, memory())


@pytest.mark.parametrize("user_id", ["", "u", "u10", "U1", "u1 ", "u%", "u_"])
def test_a_memory_of_another_user_is_not(user_id: str) -> None:
    assert not allows(OPEN, memory(user_id=user_id))


@pytest.mark.parametrize("status", sorted(set(MemoryStatus) - {MemoryStatus.ACTIVE}))
def test_only_active_memories_are_allowed(status: MemoryStatus) -> None:
    assert not allows(OPEN, memory(status=status))


def test_what_the_assistant_said_counts_for_its_neighbours_and_is_never_recalled() -> None:
    said = memory(is_verbatim=True, role=Role.ASSISTANT)
    assert counts(OPEN, said)
    assert not allows(OPEN, said)
    assert not counts(OPEN, memory(role=Role.ASSISTANT, expire_time=NOW))
    assert allows(OPEN, memory(is_verbatim=True, role=Role.USER))


def test_a_memory_ends_at_its_expire_time() -> None:
    assert allows(OPEN, memory(expire_time=NOW + TICK))
    assert not allows(OPEN, memory(expire_time=NOW))
    assert not allows(OPEN, memory(expire_time=NOW - TICK))


def test_retention_counts_from_the_last_change() -> None:
    kept = gate(UserSettings(retention=timedelta(days=30)))
    assert allows(kept, memory(age=timedelta(days=30) - TICK))
    assert not allows(kept, memory(age=timedelta(days=30)))
    assert allows(gate(UserSettings(retention=timedelta.max)), memory(age=timedelta(days=9000)))


def test_nothing_is_allowed_with_memory_off() -> None:
    off = gate(UserSettings(memory_enabled=False))
    assert not allows(off, memory(memory_type=MemoryType.CONSTRAINT, is_explicit=True))


def test_implicit_off_leaves_only_explicit_memories() -> None:
    explicit_only = gate(UserSettings(implicit_memory_enabled=False))
    assert not allows(explicit_only, memory())
    assert allows(explicit_only, memory(is_explicit=True))


@pytest.mark.parametrize("level", [1, 2])
def test_sensitive_memories_are_off_unless_switched_on(level: int) -> None:
    assert not allows(OPEN, memory(sensitivity_level=level))
    assert allows(
        gate(UserSettings(sensitive_memory_enabled=True)), memory(sensitivity_level=level)
    )


def test_a_type_switched_off_is_not_allowed() -> None:
    no_facts = gate(UserSettings(disabled_types=frozenset({MemoryType.FACT})))
    assert not allows(no_facts, memory())
    assert not allows(no_facts, memory(memory_type=MemoryType.UNKNOWN))
    assert allows(no_facts, memory(memory_type=MemoryType.CONSTRAINT))


def test_only_the_wanted_types_are_allowed() -> None:
    wanted = gate(None, MemoryType.FACT, MemoryType.TODO_HINT)
    allowed = {kind for kind in MemoryType if allows(wanted, memory(memory_type=kind))}
    assert allowed == {MemoryType.FACT, MemoryType.TODO_HINT, MemoryType.UNKNOWN}


@pytest.mark.parametrize("column", ["assistant_id", "run_id"])
def test_a_scope_sees_its_own_rows_and_those_of_all(column: str) -> None:
    def row(value: str) -> Memory:
        return memory(assistant_id=value) if column == "assistant_id" else memory(run_id=value)

    def asked(value: str) -> Gate:
        scope = (
            Scope(user_id="u1", assistant_id=value)
            if column == "assistant_id"
            else Scope(user_id="u1", run_id=value)
        )
        return Gate(scope, UserSettings(), NOW)

    assert allows(asked("a"), row("a"))
    assert allows(asked("a"), row(""))
    assert not allows(asked("a"), row("b"))
    assert not allows(asked("a"), row("A"))
    assert allows(asked(""), row("b"))


def test_the_conversation_is_never_a_filter() -> None:
    assert allows(OPEN, memory(conversation_id="elsewhere"))
