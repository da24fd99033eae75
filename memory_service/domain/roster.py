"""Which row of a user has which slot, and the order of the ids."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.admission import Admission
from memory_service.domain.columns import grown
from memory_service.domain.gate import Gate
from memory_service.domain.model import Memory

Allowed = Gate | Callable[[Memory], bool] | AbstractSet[str] | None
"""Which rows may count: those that pass a gate, that a function admits, of these ids, or all.

A gate costs little; a function is asked for every row.
"""

_RANK_BITS = 32


class Roster:
    """The active rows of one user by slot; slot 0 is nobody."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._memories: list[Memory | None] = [None]
        self._ids: NDArray[np.object_] = np.array([""], np.object_)
        self._active: NDArray[np.bool_] = np.zeros(1, np.bool_)
        self._supports_only: NDArray[np.bool_] = np.zeros(1, np.bool_)
        self._free: list[int] = []
        self._admission = Admission()
        self._ranks: NDArray[np.int64] = np.zeros(1, np.int64)
        self._last_id, self._last_rank = "", 0
        self._ranked = True

    @property
    def size(self) -> int:
        """Length of the columns in use: every slot is below it."""
        return len(self._memories)

    @property
    def slots(self) -> Mapping[str, int]:
        """The slots by memory_id."""
        return self._slots

    def reserve(self, size: int) -> None:
        """Make room for slots below size."""
        self._ids = grown(self._ids, size)
        self._active = grown(self._active, size)
        self._supports_only = grown(self._supports_only, size)
        self._ranks = grown(self._ranks, size)
        self._admission.reserve(size)

    def memory(self, memory_id: str) -> Memory | None:
        """Give an active row."""
        return self._memories[self._slots.get(memory_id, 0)]

    def memories(self) -> list[Memory]:
        """Give all active rows."""
        return [memory for memory in self._memories if memory is not None]

    def add(self, memory: Memory) -> int:
        """Give a row that has none a slot."""
        slot = self._free.pop() if self._free else len(self._memories)
        if slot == len(self._memories):
            self._memories.append(None)
        self._rank(slot, memory.memory_id)
        self._slots[memory.memory_id] = slot
        self._memories[slot] = memory
        self._ids[slot] = memory.memory_id
        self._active[slot] = True
        self._supports_only[slot] = memory.supports_only
        self._admission.put(slot, memory)
        return slot

    def replace(self, memory: Memory) -> int:
        """Put another version of a row in its slot, which is given."""
        slot = self._slots[memory.memory_id]
        self._memories[slot] = memory
        self._supports_only[slot] = memory.supports_only
        self._admission.put(slot, memory)
        return slot

    def remove(self, memory_id: str) -> int:
        """Take a row out of its slot, which is given and will be used again."""
        slot = self._slots.pop(memory_id)
        self._memories[slot] = None
        self._active[slot] = False
        self._free.append(slot)
        return slot

    def allowed(self, told: Allowed) -> NDArray[np.bool_]:
        """Tell for every slot whether its row may count."""
        active = self._active[: self.size]
        if told is None:
            return active
        if isinstance(told, Gate):
            return active & self._admission.admitted(told, self.size)
        if callable(told):
            passed: Iterable[bool] = (one is not None and told(one) for one in self._memories)
        else:
            passed = map(told.__contains__, self._ids[: self.size])
        return active & np.fromiter(passed, np.bool_, self.size)

    def recalled(self, counting: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Leave out, of the rows that may count, those that only support their neighbours."""
        return counting & ~self._supports_only[: self.size]

    def found(self, memory_ids: Iterable[str], count: int) -> NDArray[np.intp]:
        """Give the slots of so many ids, 0 for those that are not here."""
        return np.fromiter(map(self._slots.get, memory_ids, repeat(0)), np.intp, count)

    def named(self, slots: NDArray[np.intp]) -> list[str]:
        """Give the ids of rows."""
        ids: list[str] = self._ids[slots].tolist()
        return ids

    def ordered(
        self, slots: NDArray[np.intp], scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Sort slots and their scores by score desc, equal scores by id desc."""
        best_first = np.argsort(-scores)
        order, falling = slots[best_first], scores[best_first]
        same = np.zeros(len(order) + 1, np.bool_)
        np.equal(falling[1:], falling[:-1], out=same[1:-1])
        tied = np.flatnonzero(same[1:] | same[:-1])
        if tied.size:
            self._rank_all()
            group = np.cumsum(~same[:-1])[tied] << _RANK_BITS
            order[tied] = order[tied][np.argsort(group - self._ranks[order[tied]])]
        return order, falling

    def _rank(self, slot: int, memory_id: str) -> None:
        """Place an id in the order: above all others, as is usual, or where it was, for free."""
        if memory_id > self._last_id:
            self._last_id = memory_id
            self._last_rank += 1
            self._ranks[slot] = self._last_rank
        elif memory_id != self._ids[slot]:
            self._ranked = False

    def _rank_all(self) -> None:
        if self._ranked:
            return
        by_id = sorted(self._slots.values(), key=self._ids.__getitem__)
        self._ranks[by_id] = np.arange(1, len(by_id) + 1)
        self._last_id, self._last_rank = max(self._slots), len(by_id)
        self._ids[self._free] = ""
        self._ranked = True
