"""The one table from what this service refuses to what its callers are told."""

from collections.abc import Mapping
from dataclasses import dataclass

import grpc

from agent_service.chat.running import INTERNAL
from agent_service.domain import errors
from agent_service.domain.model import Failed
from rpc.errors import Failure, Violation

DOMAIN = "agent_service"
RETRY_AFTER = 1.0
_Code = grpc.StatusCode


def not_offered(what: str) -> Failure:
    """Give the refusal of something that the contract names and this version does not do."""
    return Failure(
        _Code.UNIMPLEMENTED,
        "NOT_IMPLEMENTED",
        f"{what} is part of the contract, but this version does not offer it yet",
    )


@dataclass(frozen=True, slots=True)
class _Meaning:
    code: grpc.StatusCode
    message: str
    retry_after: float | None = None


_MEANINGS: Mapping[type[errors.DomainError], _Meaning] = {
    errors.ConversationNotFound: _Meaning(_Code.NOT_FOUND, "no such conversation of this user"),
    errors.TurnNotFound: _Meaning(_Code.NOT_FOUND, "no such turn of this conversation"),
    errors.TurnRunning: _Meaning(
        _Code.ABORTED, "another turn of this conversation is running", RETRY_AFTER
    ),
    errors.LeaseLost: _Meaning(_Code.ABORTED, "the turn was taken over by another process"),
    errors.ClientMessageIdReused: _Meaning(
        _Code.ALREADY_EXISTS, "this client_message_id stands for another message"
    ),
    errors.SeqNotReached: _Meaning(_Code.OUT_OF_RANGE, "the turn never reached that event"),
    errors.StoreUnavailable: _Meaning(
        _Code.UNAVAILABLE, "conversations cannot be read or stored now", RETRY_AFTER
    ),
    errors.ModelUnavailable: _Meaning(
        _Code.UNAVAILABLE, "the model does not answer now", RETRY_AFTER
    ),
    errors.ModelRefused: _Meaning(
        _Code.FAILED_PRECONDITION, "the model does not take this request"
    ),
    errors.BudgetExceeded: _Meaning(
        _Code.FAILED_PRECONDITION, "what must be said to the model does not fit its window"
    ),
    errors.InvalidComponent: _Meaning(_Code.INTERNAL, "the context could not be assembled"),
}


_TELLING = (errors.ModelUnavailable, errors.ModelRefused, errors.BudgetExceeded)
"""Errors whose own text is made for callers; that of others may name hosts or statements."""


def failure_of(error: Exception) -> Failure | None:
    """Say what a refusal of this service means to its callers; None: it is none of ours."""
    if isinstance(error, errors.InvalidField | errors.InvalidRequest):
        bad_fields = error.violations if isinstance(error, errors.InvalidRequest) else (error,)
        violations = tuple(Violation(bad.field, bad.description) for bad in bad_fields)
        return Failure(_Code.INVALID_ARGUMENT, error.reason, str(error), violations=violations)
    meaning = next((_MEANINGS[kind] for kind in type(error).__mro__ if kind in _MEANINGS), None)
    if meaning is None or not isinstance(error, errors.DomainError):
        return None
    message = str(error) if isinstance(error, _TELLING) and str(error) else meaning.message
    return Failure(meaning.code, error.reason, message, retry_after=meaning.retry_after)


def failed_turn(error: errors.DomainError) -> Failed:
    """Give the last event of a turn that failed."""
    failure = failure_of(error)
    return INTERNAL if failure is None else Failed(failure.reason, failure.message)
