"""EraseUser."""

from memory_service.codec.checks import Checks
from memory_service.codec.memories import timestamp
from memory_service.codec.requests import mutation
from memory_service.domain.erasure import Receipt
from memory_service.ports import RequestKey
from memory_service.v1 import memory_pb2 as pb


def erase_request(request: pb.EraseUserRequest) -> tuple[str, RequestKey]:
    """Read EraseUser: user_id, key. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, "EraseUser")
    check.passed()
    return user_id, key


def erase_key(user_id: str, request_id: str) -> RequestKey:
    """Give the key of an EraseUser that was accepted."""
    _, key = erase_request(pb.EraseUserRequest(user_id=user_id, request_id=request_id))
    return key


def erase_answer(receipt: Receipt) -> bytes:
    """Keep what EraseUser answers."""
    answer = pb.EraseUserResponse(
        erase_time=timestamp(receipt.erase_time),
        erased={store.value: rows for store, rows in receipt.erased.items()},
        pending_stores=[store.value for store in receipt.pending],
    )
    kept: bytes = answer.SerializeToString(deterministic=True)
    return kept
