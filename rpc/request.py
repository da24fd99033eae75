"""The id that one request keeps through all our processes."""

from contextvars import ContextVar
from typing import Any

import grpc
import structlog

from rpc.ids import new_id

HEADER = "x-request-id"
_MAX_LENGTH = 128
_current: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """Give the id of the request that this task works for, "" outside of one."""
    return _current.get()


def bind(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """Take the caller's id if it is 1..128 printable ASCII characters, else make one.

    It is then what request_id() gives, stands in every log line of this task, and goes back to the
    caller in the trailing metadata.
    """
    sent = metadata_value(context, HEADER)
    ours = sent if _acceptable(sent) else new_id()
    set_request_id(ours)
    context.set_trailing_metadata(((HEADER, ours),))
    return ours


def set_request_id(ours: str) -> None:
    """Make it the id of this task, for work that no RPC started."""
    _current.set(ours)
    structlog.contextvars.bind_contextvars(request_id=ours)


def metadata_value(context: grpc.aio.ServicerContext[Any, Any], key: str) -> str:
    """Give the first value of a metadata key, "" if there is none."""
    for name, value in context.invocation_metadata() or ():
        if name == key:
            return value if isinstance(value, str) else value.decode("ascii", "replace")
    return ""


def _acceptable(sent: str) -> bool:
    return 0 < len(sent) <= _MAX_LENGTH and sent.isascii() and sent.isprintable()
