"""JSON ↔ protobuf at the edge."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_service.v1 import agent_pb2
from gateway.codec import MAX_DEPTH, decode, encode, json_object
from gateway.errors import Refusal
from gateway.routes import ROUTES
from memory_service.v1 import memory_pb2 as pb

CREATE = pb.CreateMemoryRequest.DESCRIPTOR
RETRIEVE = pb.RetrieveRequest.DESCRIPTOR
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def violations(value: dict[str, Any], kind: Any) -> dict[str, str]:
    with pytest.raises(Refusal) as refused:
        decode(value, kind)
    assert refused.value.status == 400
    return {bad.field: bad.description for bad in refused.value.failure.violations}


def reason(body: bytes) -> str:
    with pytest.raises(Refusal) as refused:
        json_object(body)
    assert (refused.value.status, refused.value.failure.reason) == (400, "MALFORMED_JSON")
    return refused.value.failure.message


def test_answers_print_defaults_under_the_names_of_the_proto() -> None:
    shown = encode(pb.GetMemoryResponse(memory=pb.Memory(memory_id="m", version=3)))["memory"]
    assert shown["memory_id"] == "m"
    assert (shown["content"], shown["event_ids"], shown["is_verbatim"]) == ("", [], False)
    assert shown["version"] == "3"
    assert "confidence" not in shown  # unset and 0 are two things


@pytest.mark.parametrize("version", [7, "7", 7.0])
def test_int64_is_taken_as_a_number_and_as_text(version: object) -> None:
    message: Any = decode({"memory": {"version": version}}, pb.UpdateMemoryRequest.DESCRIPTOR)
    assert message.memory.version == 7


def test_names_are_taken_as_in_the_proto_and_in_camel_case() -> None:
    message: Any = decode({"userId": "ann", "memory_types": ["MEMORY_TYPE_FACT", 1]}, RETRIEVE)
    assert message.user_id == "ann"
    assert list(message.memory_types) == [pb.MEMORY_TYPE_FACT, pb.MEMORY_TYPE_CONSTRAINT]


def test_an_explicit_zero_is_a_value() -> None:
    message: Any = decode({"memory": {"importance": 0.0}}, CREATE)
    assert message.memory.HasField("importance")
    assert message.memory.importance == 0.0
    retrieve: Any = decode({"min_relevance": 0, "budgets": {"fact": 0}}, RETRIEVE)
    assert retrieve.HasField("min_relevance")
    assert retrieve.budgets.HasField("fact")


def test_unknown_fields_are_named_wherever_they_are() -> None:
    value = {"typo": 1, "memory": {"contents": "x", "metadata": {"free": {"form": 1}}}}
    assert set(violations(value, CREATE)) == {"typo", "memory.contents"}
    batch = {"memories": [{"content": "a"}, {"contnt": "b"}]}
    assert set(violations(batch, pb.BatchCreateMemoriesRequest.DESCRIPTOR)) == {
        "memories[1].contnt"
    }


def test_a_field_under_both_its_names_is_refused() -> None:
    assert violations({"user_id": "ann", "userId": "bob"}, RETRIEVE) == {
        "user_id": "is given twice"
    }


@pytest.mark.parametrize(
    ("value", "field", "expected"),
    [
        ({"user_id": 5}, "user_id", "must be text"),
        ({"limit": "many"}, "limit", "must be a whole number in range"),
        ({"limit": 2**31}, "limit", "must be a whole number in range"),
        ({"min_relevance": "high"}, "min_relevance", "must be a number"),
        ({"explain": "yes"}, "explain", "must be true or false"),
        ({"budgets": {"fact": []}}, "budgets.fact", "must be a whole number in range"),
        ({"budgets": 3}, "budgets", "must be an object"),
        ({"memory_types": "MEMORY_TYPE_FACT"}, "memory_types", "must be a list, each one of"),
        ({"mode": "BEST"}, "mode", "must be one of RETRIEVE_MODE_UNSPECIFIED"),
    ],
)
def test_values_of_another_type_are_named_with_what_is_expected(
    value: dict[str, Any], field: str, expected: str
) -> None:
    found = violations(value, RETRIEVE)
    assert list(found) == [field]
    assert found[field].startswith(expected)


def test_times_durations_and_objects_say_how_they_are_written() -> None:
    memory = {"expire_time": "tomorrow", "metadata": [], "occur_time": 5}
    assert violations({"memory": memory}, CREATE) == {
        "memory.expire_time": "must be a time such as 2026-01-31T08:00:00Z",
        "memory.metadata": "must be an object",
        "memory.occur_time": "must be a time such as 2026-01-31T08:00:00Z",
    }
    settings = {"settings": {"retention": "long"}}
    assert "seconds" in str(violations(settings, pb.UpdateUserSettingsRequest.DESCRIPTOR))


def test_bytes_maps_and_lists_of_messages_say_what_they_take() -> None:
    report = agent_pb2.ContextReport.DESCRIPTOR
    assert "components[0].sha256" in violations({"components": [{"sha256": 5}]}, report)
    used = agent_pb2.MemoryUsed.DESCRIPTOR
    assert violations({"dropped": 5}, used) == {"dropped": "must be an object"}
    assert "must be a list" in violations({"items": 5}, used)["items"]
    event = agent_pb2.ChatEvent.DESCRIPTOR
    assert violations({"delta": {}, "usage": {}}, event) == {"": "these fields exclude each other"}


def test_many_wrong_fields_are_cut_to_twenty() -> None:
    assert len(violations({f"x{n}": 1 for n in range(50)}, RETRIEVE)) == 20
    with pytest.raises(Refusal) as refused:
        decode({f"x{n}": 1 for n in range(50)}, RETRIEVE)
    assert refused.value.failure.message.endswith("; …")


def test_lone_surrogates_become_replacement_characters_and_pairs_stay() -> None:
    body = rb'{"message": "\ud83d!", "\udc00": ["\ud83d\ude00", "a\udfff"]}'
    assert json_object(body) == {"message": "\ufffd!", "\ufffd": ["😀", "a\ufffd"]}


def test_nul_is_the_services_matter() -> None:
    assert json_object(rb'{"content": "a\u0000b"}') == {"content": "a\0b"}


def test_an_empty_body_is_an_empty_object() -> None:
    assert json_object(b"") == json_object(b" \n") == json_object(b"\xef\xbb\xbf{}") == {}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b"[1]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b'{"a": "\xed\xa0\xbd"}', "UTF-8"),
        (b'{"a": 1, "a": 2}', "a key stands twice"),
        (b'{"a": NaN}', "NaN is no number"),
        (b'{"a": -Infinity}', "-Infinity is no number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too long"),
        (b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", "levels"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    ],
)
def test_what_is_not_a_json_object_is_refused(body: bytes, said: str) -> None:
    assert said in reason(body)


@given(st.sampled_from(ROUTES), JSON, st.data())
def test_any_json_is_a_message_or_a_refusal(route: Any, value: object, data: st.DataObject) -> None:
    fields = st.sampled_from([field.name for field in route.request.fields])
    body = data.draw(st.dictionaries(fields, JSON, max_size=3)) | {data.draw(fields): value}
    try:
        decode(json_object(json.dumps(body).encode()), route.request)
    except Refusal as refusal:
        assert refusal.status == 400  # noqa: PT017 - both outcomes are right


@given(st.text(st.characters(codec="utf-8")))
def test_text_comes_back_as_it_was(text: str) -> None:
    message: Any = decode(json_object(json.dumps({"query": text}).encode()), RETRIEVE)
    assert message.query == text
    assert encode(message)["query"] == text
