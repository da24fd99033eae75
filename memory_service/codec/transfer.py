"""ExportMemories and ImportMemories."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from memory_service.codec.checks import Checks
from memory_service.codec.memories import memory_message, memory_values
from memory_service.codec.words import STATUSES
from memory_service.domain.errors import DomainError, InvalidRequest
from memory_service.domain.model import Memory, MemoryStatus
from memory_service.domain.transfer import Imported
from memory_service.domain.write import NewMemory, Outcome, Refused
from memory_service.v1 import memory_pb2 as pb

MAX_ERRORS = 100
MAX_VERSION = 2**53
"""Exact in any JSON, and far from the last int64: each change of the memory raises it."""
ItemErrorOf = Callable[[int, DomainError], pb.ItemError]


def export_answer(memory: Memory) -> bytes:
    """Give a memory as ExportMemories sends it."""
    return pb.ExportMemoriesResponse(memory=memory_message(memory)).SerializeToString()


class ImportRequests:
    """Reads the messages of one ImportMemories; the first one says whose it is."""

    def __init__(self, first: pb.ImportMemoriesRequest) -> None:
        """Read the header. Raises InvalidRequest."""
        check = Checks()
        self.user_id = check.identifier("user_id", first.user_id)
        self.request_id = check.identifier("request_id", first.request_id)
        check.passed()

    def read(self, message: pb.ImportMemoriesRequest) -> tuple[Imported | InvalidRequest, bytes]:
        """Give the memory of a message, or what is wrong with it, and a digest of it.

        Raises InvalidRequest if the message is of another import.
        """
        check = Checks()
        if message.user_id != self.user_id:
            check.refuse("user_id", "must be the same in each message")
        if message.request_id != self.request_id:
            check.refuse("request_id", "must be the same in each message")
        check.passed()
        sent = message.memory.SerializeToString(deterministic=True)
        return _imported(message, self.user_id), hashlib.sha256(sent).digest()


def import_part(outcomes: Mapping[int, Outcome], item_error: ItemErrorOf) -> bytes:
    """Count what became of some items, by their places in the stream."""
    answer = pb.ImportMemoriesResponse()
    for place, outcome in outcomes.items():
        if isinstance(outcome, Refused):
            answer.failed += 1
            answer.errors.append(item_error(place, outcome.error))
        elif outcome.created:
            answer.created += 1
        else:
            answer.refreshed += 1
    return answer.SerializeToString(deterministic=True)


def import_join(earlier: bytes, later: bytes) -> bytes:
    """Add up two answers; the first errors stay."""
    one = pb.ImportMemoriesResponse.FromString(earlier)
    other = pb.ImportMemoriesResponse.FromString(later)
    answer = pb.ImportMemoriesResponse(
        created=one.created + other.created,
        refreshed=one.refreshed + other.refreshed,
        failed=one.failed + other.failed,
        errors=[*one.errors, *other.errors][:MAX_ERRORS],
    )
    return answer.SerializeToString(deterministic=True)


def _imported(message: pb.ImportMemoriesRequest, user_id: str) -> Imported | InvalidRequest:
    check, memory = Checks(), message.memory
    imported = Imported(
        new=NewMemory(user_id=user_id, **memory_values(check, "memory.", memory, user_id)),
        memory_id=check.name("memory.memory_id", memory.memory_id),
        status=_status(check, memory),
        superseded_by=check.name("memory.superseded_by", memory.superseded_by),
        last_access_time=_time(check, memory, "last_access_time"),
        create_time=_time(check, memory, "create_time"),
        update_time=_time(check, memory, "update_time"),
        version=check.count("memory.version", memory.version, 0, MAX_VERSION),
    )
    try:
        check.passed()
    except InvalidRequest as refusal:
        return refusal
    return imported


def _status(check: Checks, memory: pb.Memory) -> MemoryStatus:
    if memory.status == pb.MEMORY_STATUS_UNSPECIFIED:
        return MemoryStatus.ACTIVE
    return check.word("memory.status", memory.status, STATUSES)


def _time(check: Checks, memory: Any, name: str) -> datetime | None:
    if not memory.HasField(name):
        return None
    return check.time(f"memory.{name}", getattr(memory, name))
