"""What an import makes of what an export gave."""

import hashlib
import uuid
from dataclasses import dataclass, replace
from datetime import datetime

from memory_service.domain.model import Memory, MemoryStatus
from memory_service.domain.write import NewMemory

_TIME_BYTES = 6
"""A UUIDv7 begins with so many bytes of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A memory to store again, already checked; empty id and None times were not said."""

    new: NewMemory
    memory_id: str = ""
    status: MemoryStatus = MemoryStatus.ACTIVE
    superseded_by: str = ""
    last_access_time: datetime | None = None
    create_time: datetime | None = None
    update_time: datetime | None = None
    version: int = 1

    def memory(self, new_id: str, now: datetime) -> Memory:
        """Give the memory, with an id and times of its own where none were said."""
        created = self.create_time or self.update_time or now
        return replace(
            self.new.memory(self.memory_id or new_id, created),
            status=self.status,
            superseded_by=self.superseded_by,
            last_access_time=self.last_access_time,
            update_time=self.update_time or created,
            version=max(self.version, 1),
        )


def moved(memory: Memory) -> Memory:
    """Give a memory under another id, because its own is another user's.

    Made from user and id, so that the same memory comes to the same place again. The id keeps the
    time of a UUIDv7, which orders lists. What it was superseded by has moved as well.
    """
    successor = memory.superseded_by
    return replace(
        memory,
        memory_id=_moved_id(memory.user_id, memory.memory_id),
        superseded_by=_moved_id(memory.user_id, successor) if successor else "",
    )


def brought_back(own: Memory, imported: Memory) -> Memory:
    """Give what a memory becomes when it is imported over: own itself if that stays.

    Of the two the one that changed later stays, but a deleted one makes way for one that is not.
    """
    revived = own.status is MemoryStatus.DELETED and imported.status is not MemoryStatus.DELETED
    if not revived and imported.update_time <= own.update_time:
        return own
    return replace(imported, memory_id=own.memory_id, version=own.version + 1)


def _moved_id(user_id: str, memory_id: str) -> str:
    hashed = hashlib.sha256(f"{user_id}\0{memory_id}".encode()).digest()
    try:
        time = uuid.UUID(memory_id).bytes[:_TIME_BYTES]
    except ValueError:
        time = bytes(_TIME_BYTES)
    number = int.from_bytes(time + hashed[: 16 - _TIME_BYTES])
    version, variant = 7 << 76, 2 << 62
    cleared = number & ~(0xF << 76) & ~(0x3 << 62)
    return str(uuid.UUID(int=cleared | version | variant))
