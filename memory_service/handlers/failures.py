"""What the domain's errors mean on the wire: the one table."""

from grpc import StatusCode

from memory_service.domain.errors import (
    AnswerTooLarge,
    DomainError,
    EmbedderUnavailable,
    EqualMemoryExists,
    HistoryNotKept,
    IndexUnavailable,
    InvalidField,
    InvalidRequest,
    JobNotFound,
    JobNotParked,
    LeaseLost,
    MemoriesChanging,
    MemoryIdTaken,
    MemoryNotAllowed,
    MemoryNotFound,
    MemoryNotInUse,
    ModelUnavailable,
    ModelUnreadable,
    RequestIdReused,
    RevisionNotReached,
    StaleVersion,
    StoreUnavailable,
    VersionNotFound,
)
from memory_service.v1 import memory_pb2 as pb
from rpc.errors import Failure, Violation, cut

DOMAIN = "memory_service"
"""ErrorInfo.domain of our failures."""

MAX_ITEM_ERROR_BYTES = 512
"""More than an ItemError takes in an answer."""

_MAX_MESSAGE_BYTES = 300

_MEANING: dict[type[DomainError], tuple[StatusCode, str, float | None]] = {
    InvalidField: (StatusCode.INVALID_ARGUMENT, "a field is not acceptable", None),
    InvalidRequest: (StatusCode.INVALID_ARGUMENT, "fields are not acceptable", None),
    MemoryNotFound: (StatusCode.NOT_FOUND, "the user has no such memory", None),
    EqualMemoryExists: (StatusCode.ALREADY_EXISTS, "another active memory says the same", None),
    MemoryIdTaken: (StatusCode.ALREADY_EXISTS, "the memory_id is in use", None),
    RequestIdReused: (
        StatusCode.ALREADY_EXISTS,
        "the request_id was used for another request; nothing was stored",
        None,
    ),
    StaleVersion: (StatusCode.ABORTED, "the memory changed since it was read", None),
    RevisionNotReached: (StatusCode.ABORTED, "min_revision is not reached yet", 0.1),
    MemoryNotAllowed: (StatusCode.FAILED_PRECONDITION, "the user's settings forbid it", None),
    MemoryNotInUse: (
        StatusCode.FAILED_PRECONDITION,
        "the memory is deleted or superseded: restore it first",
        None,
    ),
    JobNotFound: (StatusCode.NOT_FOUND, "the user has no such job", None),
    JobNotParked: (StatusCode.FAILED_PRECONDITION, "the job is not parked", None),
    VersionNotFound: (StatusCode.NOT_FOUND, "the memory had no such version", None),
    HistoryNotKept: (
        StatusCode.OUT_OF_RANGE,
        "the revision was never reached, or what happened since is not kept: list again",
        None,
    ),
    MemoriesChanging: (StatusCode.ABORTED, "the memories changed meanwhile", None),
    LeaseLost: (StatusCode.ABORTED, "another worker took the job", None),
    ModelUnavailable: (StatusCode.UNAVAILABLE, "the model does not answer", 1.0),
    ModelUnreadable: (StatusCode.UNAVAILABLE, "the model's answer cannot be used", 1.0),
    AnswerTooLarge: (StatusCode.RESOURCE_EXHAUSTED, "the answer would be too large", None),
    StoreUnavailable: (StatusCode.UNAVAILABLE, "the database does not answer", 1.0),
    IndexUnavailable: (StatusCode.UNAVAILABLE, "the index does not answer", 1.0),
    EmbedderUnavailable: (StatusCode.UNAVAILABLE, "the embedder does not answer", 1.0),
}
"""Code, a text where the error has none of its own, and seconds until a new try."""

_TELLING = (StaleVersion, MemoryNotAllowed, AnswerTooLarge, InvalidField, InvalidRequest)
"""Errors whose own text is made for callers; that of others may name hosts or statements."""


def failure_of(error: Exception) -> Failure | None:
    """Give what a domain error means to a caller; None for any other error."""
    meaning = _MEANING.get(type(error)) if isinstance(error, DomainError) else None
    if meaning is None or not isinstance(error, DomainError):
        return None
    code, text, retry_after = meaning
    message = str(error) if isinstance(error, _TELLING) and str(error) else text
    return Failure(
        code,
        error.reason,
        message,
        violations=tuple(Violation(bad.field, bad.description) for bad in _fields(error)),
        retry_after=retry_after,
    )


def item_error(index: int, error: DomainError) -> pb.ItemError:
    """Say why one item of many was refused."""
    failure = failure_of(error) or Failure(
        StatusCode.INTERNAL, "INTERNAL", "something went wrong on our side"
    )
    return pb.ItemError(
        index=index,
        code=failure.code.value[0],
        reason=failure.reason,
        message=cut(failure.message, _MAX_MESSAGE_BYTES),
    )


def _fields(error: DomainError) -> tuple[InvalidField, ...]:
    if isinstance(error, InvalidRequest):
        return error.violations
    return (error,) if isinstance(error, InvalidField) else ()
