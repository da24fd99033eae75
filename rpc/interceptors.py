"""What happens around each call, outermost first: request id, log and metrics, errors, token.

The drain, which is the server's own, stands between errors and token: see rpc.drain.
"""

import asyncio
import hmac
import time
from typing import Any

import grpc
import structlog
from grpc_status import rpc_status

from rpc.errors import Failure, FailureOf, to_status
from rpc.handling import Call, Interceptor, Proceed
from rpc.metrics import meter_of
from rpc.request import HEADER, bind, metadata_value, request_id

log = structlog.get_logger("rpc")
_OURS = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS)
_CODES = {code.value[0]: code for code in grpc.StatusCode}


async def with_request_id(call: Call, proceed: Proceed) -> Any:
    """Bind the caller's request id, or a new one, to the task and give it back to the caller."""
    bind(call.context)
    return await proceed()


async def observed(call: Call, proceed: Proceed) -> Any:
    """Count and time the call and write one line about it: no body, no message text."""
    meter = meter_of(call.method, call.kind)
    meter.started()
    begun = time.perf_counter()
    try:
        return await proceed()
    except asyncio.CancelledError:
        call.code = _as_the_client_sees_it(call)
        raise
    finally:
        if call.code is grpc.StatusCode.OK:  # unless the handler said otherwise by itself
            call.code = _said(call)
        elapsed = time.perf_counter() - begun
        meter.handled(call.code.name, elapsed)
        write = log.error if call.code in _OURS else log.info
        write(
            "rpc",
            rpc=call.method,
            code=call.code.name,
            elapsed_ms=round(elapsed * 1000, 2),
            peer=call.context.peer(),
        )


def errors(failure_of: FailureOf, domain: str) -> Interceptor:
    """End a call that raises with a status: a Failure as it is, other errors as failure_of says.

    What failure_of does not know is INTERNAL with a fixed text, and logged with its traceback. Of
    an exception group the first known member counts. A CancelledError that neither the client nor
    the loop asked for is INTERNAL too: if it escaped, gRPC would leave the client waiting.
    """

    async def intercept(call: Call, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except grpc.aio.AbortError:  # the handler has ended the call by itself
            raise
        except asyncio.CancelledError:
            if _task_was_cancelled():
                raise
            log.exception("rpc_cancelled_within", rpc=call.method)
            failure = _internal("CANCELLED_WITHIN")
        except Exception as error:
            if _task_was_cancelled():  # nobody is left to tell, as when writing to them failed
                log.info("rpc_left", rpc=call.method, error=type(error).__name__)
                raise asyncio.CancelledError from None
            failure = _failure(error, failure_of) or _internal("INTERNAL")
            if failure.reason == "INTERNAL":
                log.exception("rpc_failed", rpc=call.method)
        await abort(call, failure, domain)
        raise AssertionError  # pragma: no cover - abort raises

    return intercept


def token(service_token: str) -> Interceptor:
    """Let through what carries `authorization: Bearer <service_token>`; all, if that is empty."""
    expected = f"Bearer {service_token}".encode()

    async def intercept(call: Call, proceed: Proceed) -> Any:
        sent = metadata_value(call.context, "authorization").encode()
        if service_token and not hmac.compare_digest(sent, expected):
            code, text = grpc.StatusCode.UNAUTHENTICATED, "the service token is missing or wrong"
            raise Failure(code, "BAD_SERVICE_TOKEN" if sent else "NO_SERVICE_TOKEN", text)
        return await proceed()

    return intercept


async def abort(call: Call, failure: Failure, domain: str) -> None:
    """End the call with this failure. Raises AbortError, as gRPC wants it."""
    call.code = failure.code
    status = rpc_status.to_status(to_status(failure, domain))
    trailing = (*status.trailing_metadata, (HEADER, request_id()))
    await call.context.abort(status.code, status.details, trailing)


def _failure(error: Exception, failure_of: FailureOf) -> Failure | None:
    if isinstance(error, Failure):
        return error
    if isinstance(error, ExceptionGroup):
        known = (_failure(member, failure_of) for member in error.exceptions)
        return next((failure for failure in known if failure is not None), None)
    try:
        return failure_of(error)
    except Exception:
        log.exception("failure_of_failed")
        return None


def _internal(reason: str) -> Failure:
    return Failure(grpc.StatusCode.INTERNAL, reason, "something went wrong on our side")


def _task_was_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _as_the_client_sees_it(call: Call) -> grpc.StatusCode:
    left: float | None = call.context.time_remaining()
    over = left is not None and left <= 0
    return grpc.StatusCode.DEADLINE_EXCEEDED if over else grpc.StatusCode.CANCELLED


def _said(call: Call) -> grpc.StatusCode:
    said: Any = call.context.code()  # the stub says StatusCode, grpc.aio gives its number
    return _CODES.get(said, said) or grpc.StatusCode.OK
