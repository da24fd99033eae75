import inspect

import grpc
import pytest

from memory_service.domain import errors
from memory_service.handlers.failures import MAX_ITEM_ERROR_BYTES, failure_of, item_error
from rpc.errors import Violation

EVERY = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, errors.DomainError) and error is not errors.DomainError
]


def an(error: type[errors.DomainError], text: str = "secret host") -> errors.DomainError:
    field = errors.InvalidField("memory.content", "is required")
    if error is errors.InvalidField:
        return field
    return errors.InvalidRequest([field]) if error is errors.InvalidRequest else error(text)


@pytest.mark.parametrize("error", EVERY)
def test_every_domain_error_has_a_code_and_a_reason(error: type[errors.DomainError]) -> None:
    failure = failure_of(an(error))
    assert failure is not None
    assert failure.code not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
    assert failure.reason not in {"", "INTERNAL"}


def test_unavailable_and_not_reached_say_when_to_come_again() -> None:
    for error in (errors.StoreUnavailable(), errors.RevisionNotReached()):
        failure = failure_of(error)
        assert failure is not None
        assert failure.retry_after


def test_texts_that_are_not_made_for_callers_do_not_reach_them() -> None:
    for error in (errors.StoreUnavailable, errors.MemoryNotFound, errors.RequestIdReused):
        failure = failure_of(error("mysql at 10.0.0.7"))
        assert failure is not None
        assert "10.0.0.7" not in failure.message


def test_fields_become_violations() -> None:
    for error in (errors.InvalidField, errors.InvalidRequest):
        failure = failure_of(an(error))
        assert failure is not None
        assert failure.violations == (Violation("memory.content", "is required"),)


def test_other_errors_are_not_known() -> None:
    assert failure_of(ValueError("x")) is None
    assert failure_of(errors.DomainError("x")) is None


def test_an_item_error_names_place_code_and_reason_in_few_bytes() -> None:
    item = item_error(7, errors.MemoryNotAllowed("长" * 9_999))
    assert (item.index, item.code, item.reason) == (7, 9, "SETTINGS_FORBID")
    assert item.ByteSize() < MAX_ITEM_ERROR_BYTES
    assert item_error(0, errors.DomainError("x")).code == 13
