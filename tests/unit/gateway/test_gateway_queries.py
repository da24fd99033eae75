"""Fields of a request that stand in the query."""

from typing import Any

import grpc
import pytest

from gateway.codec import decode
from gateway.errors import HTTP_STATUS, Refusal
from gateway.requests import query_values
from gateway.routes import ROUTES, Route
from gateway.values import message_of
from memory_service.v1 import memory_pb2 as pb
from rpc.errors import Failure


def route(method: str, name: str) -> Route:
    return next(r for r in ROUTES if (r.method, r.path.partition("/v1/")[2]) == (method, name))


LIST = route("GET", "memory/items")


def read(*items: tuple[str, str], of: Route = LIST) -> Any:
    return decode(query_values(items, of), of.request)


def fields(*items: tuple[str, str], of: Route = LIST) -> list[str]:
    with pytest.raises(Refusal) as refused:
        read(*items, of=of)
    return [violation.field for violation in refused.value.failure.violations]


def test_each_field_is_taken_by_its_name_and_repeated_ones_as_often_as_they_stand_there() -> None:
    message = read(
        ("user_id", "ann"),
        ("memory_types", "MEMORY_TYPE_FACT"),
        ("memoryTypes", "1"),
        ("text", "a=b&c"),
        ("pageSize", "20"),
    )
    assert (message.user_id, message.text, message.page_size) == ("ann", "a=b&c", 20)
    assert list(message.memory_types) == [pb.MEMORY_TYPE_FACT, pb.MEMORY_TYPE_CONSTRAINT]


def test_booleans_are_true_false_1_and_0() -> None:
    timeline = route("GET", "agent/conversation-timeline")
    assert read(("from_end", "true"), of=timeline).from_end
    assert read(("from_end", "1"), of=timeline).from_end
    assert not read(("from_end", "false"), of=timeline).from_end
    assert fields(("from_end", "yes"), of=timeline) == ["from_end"]


def test_what_is_no_field_or_stands_twice_or_has_another_type_is_named() -> None:
    assert fields(("user", "ann"), ("page_size", "1"), ("pageSize", "2")) == ["user", "page_size"]
    assert fields(("page_size", "")) == ["page_size"]
    assert fields(("memory_types", "FACT")) == ["memory_types"]


def test_a_route_with_a_body_takes_no_query() -> None:
    assert fields(("user_id", "ann"), of=route("POST", "agent/chat")) == ["user_id"]


def test_every_code_of_grpc_but_ok_has_a_status() -> None:
    assert set(HTTP_STATUS) == set(grpc.StatusCode) - {grpc.StatusCode.OK}


def test_retry_after_is_whole_seconds_and_never_0() -> None:
    def header(seconds: float) -> str:
        failure = Failure(grpc.StatusCode.UNAVAILABLE, "X", "x", retry_after=seconds)
        return Refusal(failure).headers["Retry-After"]

    assert [header(0.0), header(0.1), header(1.0), header(1.2)] == ["1", "1", "1", "2"]


def test_a_field_without_a_message_has_none() -> None:
    with pytest.raises(TypeError):
        message_of(pb.Memory.DESCRIPTOR.fields_by_name["content"])
