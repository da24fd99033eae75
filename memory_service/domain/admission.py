"""The gate of a request over all rows of a working set at once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.columns import grown
from memory_service.domain.gate import Gate, counts
from memory_service.domain.model import Memory

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMELESS = datetime.max.replace(tzinfo=UTC)
_NEVER = np.iinfo(np.int64).max

_Kind = tuple[object, ...]


class Admission:
    """What a gate looks at, by slot: the kind of a row, and its times in microseconds.

    Rows that differ in nothing but text and times are of one kind, and the gate is asked once for
    each kind instead of once for each row.
    """

    def __init__(self) -> None:
        self._kind: NDArray[np.intp] = np.zeros(1, np.intp)
        self._expires: NDArray[np.int64] = np.zeros(1, np.int64)
        self._updated: NDArray[np.int64] = np.zeros(1, np.int64)
        self._kinds: dict[_Kind, int] = {}
        self._examples: list[Memory] = []

    def reserve(self, size: int) -> None:
        """Make room for slots below size."""
        self._kind = grown(self._kind, size)
        self._expires = grown(self._expires, size)
        self._updated = grown(self._updated, size)

    def put(self, slot: int, memory: Memory) -> None:
        """Enter a row, or another version of it."""
        kind = _kind(memory)
        number = self._kinds.setdefault(kind, len(self._examples))
        if number == len(self._examples):
            self._examples.append(replace(memory, expire_time=None, update_time=_TIMELESS))
        self._kind[slot] = number
        self._expires[slot] = _micros(memory.expire_time) if memory.expire_time else _NEVER
        self._updated[slot] = _micros(memory.update_time)

    def admitted(self, gate: Gate, size: int) -> NDArray[np.bool_]:
        """Tell for the slots below size what gate.counts says of their rows."""
        if not self._examples:
            return np.zeros(size, np.bool_)
        kinds = np.array([counts(gate, example) for example in self._examples])
        now = _micros(gate.now)
        mask: NDArray[np.bool_] = kinds[self._kind[:size]] & (self._expires[:size] > now)
        if gate.settings.retention is not None:
            mask &= now - self._updated[:size] < _length(gate.settings.retention)
        return mask


def _kind(memory: Memory) -> _Kind:
    return (
        memory.user_id,
        memory.assistant_id,
        memory.run_id,
        memory.memory_type,
        memory.is_explicit,
        memory.sensitivity_level,
        memory.status,
    )


def _micros(time: datetime) -> int:
    return _length(time - _EPOCH)


def _length(time: timedelta) -> int:
    return time // timedelta(microseconds=1)
