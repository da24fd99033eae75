"""Requests that change memories, and their answers as bytes to keep under the request_id."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memory_service.codec.checks import Checks
from memory_service.codec.memories import check_paths, memory_message, new_memory, patch_values
from memory_service.codec.settings import SETTINGS, settings_message
from memory_service.domain.errors import DomainError, InvalidRequest
from memory_service.domain.model import Memory, UserState
from memory_service.domain.write import MemoryPatch, NewMemory, Outcome, Refused, Stored
from memory_service.ports import RequestKey
from memory_service.v1 import memory_pb2 as pb

MAX_CREATES = 500
MAX_IDS = 100


def mutation(check: Checks, request: Any, rpc: str) -> tuple[str, RequestKey]:
    """Read user_id and request_id, and make a digest of everything but the latter."""
    user_id = check.identifier("user_id", request.user_id)
    request_id = check.identifier("request_id", request.request_id)
    body = type(request)()
    body.CopyFrom(request)
    body.ClearField("request_id")
    digest = hashlib.sha256(body.SerializeToString(deterministic=True)).digest()
    return user_id, RequestKey(request_id, rpc, digest)


def create_request(request: pb.CreateMemoryRequest) -> tuple[NewMemory, RequestKey]:
    """Read CreateMemory. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, "CreateMemory")
    if not request.HasField("memory"):
        check.refuse("memory", "is required")
        check.passed()
    new = new_memory(check, "memory.", request.memory, user_id)
    check.passed()
    return new, key


def batch_create_request(
    request: pb.BatchCreateMemoriesRequest,
) -> tuple[str, Sequence[NewMemory | InvalidRequest], RequestKey]:
    """Read BatchCreateMemories: each item, or what is wrong with it. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, "BatchCreateMemories")
    check.count("memories", len(request.memories), 1, MAX_CREATES)
    check.passed()
    return (
        user_id,
        [_item(f"memories[{i}].", m, user_id) for i, m in enumerate(request.memories)],
        key,
    )


def _item(at: str, message: pb.Memory, user_id: str) -> NewMemory | InvalidRequest:
    check = Checks()
    new = new_memory(check, at, message, user_id)
    try:
        check.passed()
    except InvalidRequest as refusal:
        return refusal
    return new


def update_request(request: pb.UpdateMemoryRequest) -> tuple[str, MemoryPatch, RequestKey]:
    """Read UpdateMemory. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, "UpdateMemory")
    memory = request.memory
    memory_id = check.identifier("memory.memory_id", memory.memory_id)
    check.owner("memory.user_id", memory.user_id, user_id)
    if memory.version < 1:
        check.refuse("memory.version", "must be the version that was read")
    values = patch_values(check, "memory.", memory, request.update_mask.paths)
    check.passed()
    return user_id, MemoryPatch(memory_id=memory_id, version=memory.version, values=values), key


def memory_request(
    request: pb.DeleteMemoryRequest | pb.RestoreMemoryRequest, rpc: str
) -> tuple[str, str, RequestKey]:
    """Read a mutation that names a memory: user_id, memory_id, key. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, rpc)
    memory_id = check.identifier("memory_id", request.memory_id)
    check.passed()
    return user_id, memory_id, key


def settings_request(
    request: pb.UpdateUserSettingsRequest,
) -> tuple[str, dict[str, Any], RequestKey]:
    """Read UpdateUserSettings: user_id, new values by name, key. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, "UpdateUserSettings")
    paths = request.update_mask.paths
    check_paths(check, paths, SETTINGS)
    values = {
        p: SETTINGS[p](check, f"settings.{p}", request.settings) for p in paths if p in SETTINGS
    }
    check.passed()
    return user_id, values, key


def user_request(request: Any) -> str:
    """Read a request that names a user only. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    check.passed()
    return user_id


def get_request(request: pb.GetMemoryRequest) -> tuple[str, str]:
    """Read GetMemory: user_id, memory_id. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    memory_id = check.identifier("memory_id", request.memory_id)
    check.passed()
    return user_id, memory_id


def batch_get_request(request: pb.BatchGetMemoriesRequest) -> tuple[str, Sequence[str]]:
    """Read BatchGetMemories: user_id, memory_ids in request order. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    memory_ids = check.names("memory_ids", request.memory_ids, MAX_IDS, least=1)
    check.passed()
    return user_id, memory_ids


def create_answer(stored: Stored) -> bytes:
    """Keep what CreateMemory answers."""
    memory = memory_message(stored.memory)
    return _kept(pb.CreateMemoryResponse(memory=memory, created=stored.created))


def batch_create_answer(
    outcomes: Mapping[int, Outcome], item_error: Callable[[int, DomainError], pb.ItemError]
) -> bytes:
    """Keep what BatchCreateMemories answers about some items, by their places in the request.

    Such answers, one after the other, are one answer: protobuf joins repeated fields.
    """
    response = pb.BatchCreateMemoriesResponse()
    for place, outcome in outcomes.items():
        match outcome:
            case Stored(memory, created):
                response.results.add(memory=memory_message(memory), created=created)
            case Refused(error):
                response.results.add(error=item_error(place, error))
    return _kept(response)


def update_answer(memory: Memory) -> bytes:
    """Keep what UpdateMemory answers."""
    return _kept(pb.UpdateMemoryResponse(memory=memory_message(memory)))


def delete_answer(memory: Memory) -> bytes:
    """Keep what DeleteMemory answers."""
    return _kept(pb.DeleteMemoryResponse(memory=memory_message(memory)))


def restore_answer(memory: Memory) -> bytes:
    """Keep what RestoreMemory answers."""
    return _kept(pb.RestoreMemoryResponse(memory=memory_message(memory)))


def settings_answer(state: UserState) -> bytes:
    """Keep what UpdateUserSettings answers."""
    return _kept(
        pb.UpdateUserSettingsResponse(
            settings=settings_message(state.settings), revision=state.revision
        )
    )


def _kept(message: Any) -> bytes:
    kept: bytes = message.SerializeToString(deterministic=True)
    return kept
