"""What a call may fail with, to and from google.rpc.Status.

A status, message and details together, stays under 1 KiB: gRPC sends it in HTTP/2 trailers, where
more than about 8 KiB arrives as RESOURCE_EXHAUSTED, and non-ASCII text triples on the way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from grpc_status import rpc_status

MAX_STATUS_BYTES = 1023
_MAX_MESSAGE_BYTES = 300
_MAX_PART_BYTES = 120
_ROOM_FOR_COUNT = 40
_LEFT_OUT = "violations_left_out"
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Violation:
    """One request field that is not acceptable: its proto path, and what is expected of it."""

    field: str
    description: str


class Failure(Exception):
    """A call ends with this code; everything in it is safe to show to the caller.

    reason is UPPER_SNAKE_CASE and stable; retry_after is seconds. metadata are short facts that a
    program may act on.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        reason: str,
        message: str,
        *,
        violations: tuple[Violation, ...] = (),
        metadata: Mapping[str, str] = _NOTHING,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{code.name} {reason}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.violations = violations
        self.metadata = metadata
        self.retry_after = retry_after


FailureOf = Callable[[Exception], Failure | None]
"""Maps a service's own errors; None for those that it does not know."""


def to_status(failure: Failure, domain: str) -> Status:
    """Give the google.rpc.Status of a failure, under 1 KiB however long its texts are.

    Texts are cut at a character; metadata and violations that do not fit are left out from the
    last, and ErrorInfo.metadata["violations_left_out"] counts the latter. Lone surrogates become ?.
    """
    info = error_details_pb2.ErrorInfo(
        reason=cut(failure.reason, _MAX_PART_BYTES), domain=cut(domain, _MAX_PART_BYTES)
    )
    status = Status(code=failure.code.value[0], message=cut(failure.message, _MAX_MESSAGE_BYTES))
    retry: list[Any] = []
    if failure.retry_after is not None:
        retry.append(error_details_pb2.RetryInfo())
        retry[0].retry_delay.FromNanoseconds(int(max(0.0, failure.retry_after) * 1e9))
    bad_request = error_details_pb2.BadRequest()

    def packed() -> Status:
        whole = Status(code=status.code, message=status.message)
        details = [info, *([bad_request] if bad_request.field_violations else []), *retry]
        for detail in details:
            whole.details.add().Pack(detail)
        return whole

    for key, value in failure.metadata.items():
        name = cut(key, _MAX_PART_BYTES)
        info.metadata[name] = cut(value, _MAX_PART_BYTES)
        if packed().ByteSize() > MAX_STATUS_BYTES - _ROOM_FOR_COUNT:
            del info.metadata[name]
            break
    for number, violation in enumerate(failure.violations):
        bad_request.field_violations.add(
            field=cut(violation.field, _MAX_PART_BYTES),
            description=cut(violation.description, _MAX_PART_BYTES),
        )
        if packed().ByteSize() > MAX_STATUS_BYTES - _ROOM_FOR_COUNT:
            del bad_request.field_violations[-1]
            info.metadata[_LEFT_OUT] = str(len(failure.violations) - number)
            break
    return packed()


def read_failure(error: grpc.RpcError) -> Failure:
    """Give what a call of ours failed with, as the server said it.

    An answer without readable details, such as one that gRPC itself made, has the code's name as
    its reason and gRPC's text, which may name addresses, as its message.
    """
    call: Any = error
    code: grpc.StatusCode = call.code()
    text: str = call.details() or ""
    try:
        status = rpc_status.from_call(call)
    except (ValueError, DecodeError):  # details of another code or text, or not a Status
        status = None
    if status is None:
        return Failure(code, code.name, text)
    reason, metadata = code.name, dict[str, str]()
    violations: list[Violation] = []
    retry_after: float | None = None
    for detail in status.details:
        for kind in (
            error_details_pb2.ErrorInfo,
            error_details_pb2.BadRequest,
            error_details_pb2.RetryInfo,
        ):
            if not detail.Is(kind.DESCRIPTOR):
                continue
            value = kind()
            detail.Unpack(value)
            if isinstance(value, error_details_pb2.ErrorInfo):
                reason, metadata = value.reason or reason, dict(value.metadata)
            elif isinstance(value, error_details_pb2.BadRequest):
                violations += [Violation(v.field, v.description) for v in value.field_violations]
            else:
                retry_after = value.retry_delay.ToNanoseconds() / 1e9
    return Failure(
        code,
        reason,
        text,
        violations=tuple(violations),
        metadata=metadata,
        retry_after=retry_after,
    )


def cut(text: str, most: int) -> str:
    """Give text in at most that many UTF-8 bytes, ended by … where something is missing."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    return raw[: most - len("…".encode())].decode("utf-8", "ignore") + "…"
