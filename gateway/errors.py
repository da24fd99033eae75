"""What a request is refused with: one table from gRPC codes to HTTP, and one error body."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import grpc
import structlog

from rpc.errors import Failure, Violation, read_failure

log = structlog.get_logger("gateway")
Code = grpc.StatusCode

HTTP_STATUS: Mapping[grpc.StatusCode, int] = MappingProxyType(
    {
        Code.INVALID_ARGUMENT: 400,
        Code.FAILED_PRECONDITION: 400,
        Code.OUT_OF_RANGE: 400,
        Code.UNAUTHENTICATED: 401,
        Code.PERMISSION_DENIED: 403,
        Code.NOT_FOUND: 404,
        Code.ABORTED: 409,
        Code.ALREADY_EXISTS: 409,
        Code.RESOURCE_EXHAUSTED: 429,
        Code.CANCELLED: 499,
        Code.INTERNAL: 500,
        Code.UNKNOWN: 500,
        Code.DATA_LOSS: 500,
        Code.UNIMPLEMENTED: 501,
        Code.UNAVAILABLE: 503,
        Code.DEADLINE_EXCEEDED: 504,
    }
)

_OWN_WORDS: Mapping[grpc.StatusCode, str] = MappingProxyType(
    {
        Code.UNAVAILABLE: "the {service} service cannot be reached now",
        Code.DEADLINE_EXCEEDED: "the {service} service took too long",
        Code.RESOURCE_EXHAUSTED: "the message is too large for the {service} service",
        Code.UNIMPLEMENTED: "the {service} service does not offer this",
        Code.CANCELLED: "the call was cancelled",
    }
)
_TOKEN_REASONS = ("NO_SERVICE_TOKEN", "BAD_SERVICE_TOKEN")
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Refusal(Exception):
    """A request ends with this; everything in it is safe to show to the caller.

    The HTTP status is that of the code in the table, unless one is given.
    """

    def __init__(
        self,
        failure: Failure,
        *,
        status: int | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.status = status or HTTP_STATUS[failure.code]
        self.headers = dict(headers)
        if failure.retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(failure.retry_after)))


def bad_request(violations: list[Violation]) -> Refusal:
    """Refuse a request whose fields are not acceptable."""
    text = "; ".join(f"{v.field}: {v.description}" for v in violations[:3])
    if len(violations) > len(violations[:3]):
        text += "; …"
    failure = Failure(Code.INVALID_ARGUMENT, "INVALID_REQUEST", text, violations=tuple(violations))
    return Refusal(failure)


def malformed(message: str) -> Refusal:
    """Refuse a body that is not a JSON object."""
    return Refusal(Failure(Code.INVALID_ARGUMENT, "MALFORMED_JSON", message))


def from_rpc(error: grpc.RpcError, service: str) -> Refusal:
    """Say what a call of ours failed with, as the service said it.

    gRPC's own texts name addresses and internals; they go to the log, and the caller gets ours.
    """
    failure = read_failure(error)
    if failure.reason in _TOKEN_REASONS:  # not the caller's key: ours is missing or wrong
        log.error("service_token_refused", to=service, reason=failure.reason)
        text = f"the gateway is not allowed to call the {service} service"
        return Refusal(Failure(Code.INTERNAL, "GATEWAY_NOT_ALLOWED", text))
    if failure.reason != failure.code.name:
        return Refusal(failure)
    log.warning("rpc_failed", to=service, code=failure.code.name, details=failure.message)
    words = _OWN_WORDS.get(failure.code, "something went wrong in the {service} service")
    return Refusal(Failure(failure.code, failure.reason, words.format(service=service)))


def error_body(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """Give the body of every answer that is not a success."""
    failure = refusal.failure
    return {
        "error": {
            "code": failure.code.name,
            "reason": failure.reason,
            "message": failure.message,
            "violations": [
                {"field": violation.field, "description": violation.description}
                for violation in failure.violations
            ],
            "request_id": request_id,
        }
    }
