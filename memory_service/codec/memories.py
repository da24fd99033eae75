"""Memory: the message ↔ what is stored, and what a create or an update may say of it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.codec.checks import (
    MAX_SENSITIVITY,
    MAX_TITLE_BYTES,
    Checks,
)
from memory_service.codec.words import (
    INDEX_STATE_OF,
    MEMORY_TYPE_OF,
    MEMORY_TYPES,
    ROLE_OF,
    ROLES,
    SETTABLE_STATUSES,
    STATUS_OF,
)
from memory_service.domain.model import Memory, MemoryStatus, Role
from memory_service.domain.write import (
    CONFIDENCE_BY_HAND,
    EXPLICIT_BY_HAND,
    IMPORTANCE_BY_HAND,
    NewMemory,
)
from memory_service.v1 import memory_pb2 as pb

MAX_EVENT_IDS = 100
MAX_ANSWER_BYTES = 3_584 * 1024
"""3.5 MiB: answers stay below it, since clients take 4 MiB."""
MAX_MEMORY_BYTES = 64 * 1024
"""More than any memory takes in an answer; metadata takes up to six times its JSON."""
Read = Callable[[Checks, str, pb.Memory], Any]


def memory_message(memory: Memory) -> pb.Memory:
    """Give a memory as answers show it."""
    message = pb.Memory(
        memory_id=memory.memory_id,
        user_id=memory.user_id,
        conversation_id=memory.conversation_id,
        assistant_id=memory.assistant_id,
        run_id=memory.run_id,
        memory_type=MEMORY_TYPE_OF.get(memory.memory_type, pb.MEMORY_TYPE_UNSPECIFIED),
        title=memory.title,
        content=memory.content,
        content_hash=memory.content_hash,
        confidence=memory.confidence,
        importance=memory.importance,
        sensitivity_level=memory.sensitivity_level,
        is_explicit=memory.is_explicit,
        status=STATUS_OF[memory.status],
        superseded_by=memory.superseded_by,
        expire_time=timestamp(memory.expire_time),
        turn_id=memory.turn_id,
        event_ids=memory.event_ids,
        last_access_time=timestamp(memory.last_access_time),
        create_time=timestamp(memory.create_time),
        update_time=timestamp(memory.update_time),
        version=memory.version,
        revision=memory.revision,
        index_state=INDEX_STATE_OF[memory.index_state],
        is_verbatim=memory.is_verbatim,
        speaker=memory.speaker,
        occur_time=timestamp(memory.occur_time),
        role=ROLE_OF[memory.role] if memory.role else pb.MESSAGE_ROLE_UNSPECIFIED,
    )
    if memory.metadata:
        data: Mapping[str, Any] = memory.metadata
        message.metadata.update(data)
    return message


def memory_size(memory: Memory) -> int:
    """Give the bytes that a memory takes in an answer, a few more than it does."""
    return memory_message(memory).ByteSize() + 32


def timestamp(time: datetime | None) -> Timestamp | None:
    """Give a moment, None for none."""
    if time is None:
        return None
    message = Timestamp()
    message.FromDatetime(time)
    return message


def new_memory(check: Checks, at: str, message: pb.Memory, user_id: str) -> NewMemory:
    """Read a memory to create; at is the path of the message, such as `memory.`."""
    values = memory_values(check, at, message, user_id)
    if message.status not in {pb.MEMORY_STATUS_UNSPECIFIED, pb.MEMORY_STATUS_ACTIVE}:
        check.refuse(f"{at}status", "a new memory is active")
    return NewMemory(user_id=user_id, **values)


def memory_values(check: Checks, at: str, message: pb.Memory, user_id: str) -> dict[str, Any]:
    """Read what NewMemory takes but for the owner, who must be the request's."""
    check.owner(f"{at}user_id", message.user_id, user_id)
    return {
        name: read(check, f"{at}{name}", message)
        for name, read in _READ.items()
        if name != "status"
    }


def patch_values(
    check: Checks, at: str, message: pb.Memory, paths: Sequence[str]
) -> Mapping[str, Any]:
    """Read the new values that an update mask names."""
    check_paths(check, paths, _CHANGED)
    return {
        name: _CHANGED[name](check, f"{at}{name}", message) for name in paths if name in _CHANGED
    }


def check_paths(check: Checks, paths: Sequence[str], known: Mapping[str, object]) -> None:
    """Let a mask name at least one path, and only such that may be changed."""
    if not paths:
        check.refuse("update_mask", "must name at least one field")
    for i, path in enumerate(paths):
        if path not in known:
            check.refuse(
                f"update_mask.paths[{i}]", f"{path[:64]!r} is no field that can be changed"
            )


def _confidence(check: Checks, field: str, message: pb.Memory) -> float:
    given = message.confidence if message.HasField("confidence") else CONFIDENCE_BY_HAND
    return check.fraction(field, given)


def _importance(check: Checks, field: str, message: pb.Memory) -> float:
    given = message.importance if message.HasField("importance") else IMPORTANCE_BY_HAND
    return check.fraction(field, given)


def _is_explicit(_check: Checks, _field: str, message: pb.Memory) -> bool:
    return message.is_explicit if message.HasField("is_explicit") else EXPLICIT_BY_HAND


def _status(check: Checks, field: str, message: pb.Memory) -> MemoryStatus:
    if message.status not in SETTABLE_STATUSES:
        check.refuse(field, "must be active or archived")
    return SETTABLE_STATUSES.get(message.status, MemoryStatus.ACTIVE)


def _expire_time(check: Checks, field: str, message: pb.Memory) -> datetime | None:
    return check.time(field, message.expire_time) if message.HasField("expire_time") else None


def _occur_time(check: Checks, field: str, message: pb.Memory) -> datetime | None:
    return check.time(field, message.occur_time) if message.HasField("occur_time") else None


def _role(check: Checks, field: str, message: pb.Memory) -> Role | None:
    if message.role == pb.MESSAGE_ROLE_UNSPECIFIED:
        return None
    role = ROLES.get(message.role)
    if role not in {Role.USER, Role.ASSISTANT}:
        check.refuse(field, "must be user or assistant")
    if not message.is_verbatim:
        check.refuse(field, "is for verbatim turns only")
    return role


_READ: Mapping[str, Read] = {
    "conversation_id": lambda check, field, m: check.name(field, m.conversation_id),
    "assistant_id": lambda check, field, m: check.name(field, m.assistant_id),
    "run_id": lambda check, field, m: check.name(field, m.run_id),
    "memory_type": lambda check, field, m: check.word(field, m.memory_type, MEMORY_TYPES),
    "title": lambda check, field, m: check.text(field, m.title, MAX_TITLE_BYTES),
    "content": lambda check, field, m: check.content(field, m.content),
    "confidence": _confidence,
    "importance": _importance,
    "sensitivity_level": lambda check, field, m: check.count(
        field, m.sensitivity_level, 0, MAX_SENSITIVITY
    ),
    "is_explicit": _is_explicit,
    "status": _status,
    "expire_time": _expire_time,
    "metadata": lambda check, field, m: check.metadata(field, m.metadata),
    "turn_id": lambda check, field, m: check.name(field, m.turn_id),
    "event_ids": lambda check, field, m: check.names(field, m.event_ids, MAX_EVENT_IDS),
    "is_verbatim": lambda _check, _field, m: m.is_verbatim,
    "speaker": lambda check, field, m: check.name(field, m.speaker),
    "occur_time": _occur_time,
    "role": _role,
}
"""The fields that a caller may set, in the order of the proto."""
_CHANGED = {name: read for name, read in _READ.items() if name != "role"}
"""Those that an update may name: who spoke does not change."""
