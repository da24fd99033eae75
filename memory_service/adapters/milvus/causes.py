"""What went wrong with Milvus, in the words of IndexUnavailable.cause."""

from enum import StrEnum

import grpc
from pymilvus import MilvusException

from memory_service.domain.errors import IndexUnavailable

FAULTS = (MilvusException, grpc.RpcError, OSError)
"""All that a call through pymilvus raises when the server does not do it; TimeoutError too."""

NOT_FOUND = 100
NOT_LOADED = 101
"""Milvus's codes for a collection that is gone, and for one that is not in memory."""

_INVALID = frozenset({6, 1100, 1101, 65535})
"""Codes of a server that answered, and said that it cannot take what was sent."""


class Cause(StrEnum):
    """Why the index did not do what it was asked."""

    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    BREAKER_OPEN = "breaker_open"
    REINDEXING = "reindexing"
    DIM_MISMATCH = "dim_mismatch"
    """A collection of our name holds other vectors; it is left alone."""
    UNFIT = "unfit"
    """This Milvus is too old, or its cosines run the wrong way."""
    BUSY = "busy"
    """Another process holds the milvus-lite folder."""
    REFUSED = "refused"
    """Milvus is there, and cannot take this row."""


LASTING = frozenset({Cause.DIM_MISMATCH, Cause.UNFIT, Cause.BUSY})
"""What does not pass by itself, so callers hear it instead of breaker_open."""


def cause_of(fault: BaseException) -> Cause:
    """Name the cause of one of FAULTS or of an IndexUnavailable."""
    if isinstance(fault, IndexUnavailable):
        return Cause(fault.cause)
    if isinstance(fault, TimeoutError):
        return Cause.TIMEOUT
    code = code_of(fault)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Cause.TIMEOUT
    return Cause.REFUSED if code in _INVALID else Cause.UNAVAILABLE


def code_of(fault: BaseException) -> object:
    """Give Milvus's number or gRPC's status; None if the fault has neither."""
    code = getattr(fault, "code", None)
    return code() if callable(code) else code
