"""Unary routes: what reaches the services, and what comes back."""

import asyncio
import json
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from agent_service.v1 import agent_pb2
from gateway.openapi import document
from gateway.routes import ROUTES, Route
from memory_service.v1 import memory_pb2 as pb
from rpc.errors import Failure
from tests.services.running_gateway import PATIENCE, RunningGateway

MEMORY = "/api/v1/memory"
AGENT = "/api/v1/agent"
UNARY = [route for route in ROUTES if not route.streams]


def name(route: Route) -> str:
    return f"{route.method} {route.path}"


def conforms(value: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> bool:
    """Tell whether a value is as the OpenAPI document says: types, names, choices."""
    if "$ref" in schema:
        return conforms(value, schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "enum" in schema:
        return value in schema["enum"]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool}
    kinds |= {"integer": int, "number": (int, float)}  # type: ignore[dict-item]
    named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(isinstance(value, kinds[kind]) for kind in named):
        return False
    if isinstance(value, list):
        return all(conforms(item, schema["items"], schemas) for item in value)
    if not isinstance(value, dict):
        return True
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    return all(
        conforms(inner, known[key], schemas)
        if key in known
        else other is True or (bool(other) and conforms(inner, other, schemas))
        for key, inner in value.items()
    )


def filled(kind: Any, depth: int = 0) -> Any:
    """Give a message with every field set, in JSON."""
    found: dict[str, Any] = {}
    for field in kind.fields:
        if field.containing_oneof is not None and len(field.containing_oneof.fields) > 1:
            continue
        inner = field.message_type
        if inner is None:
            value: Any = {"string": "x", "bool": True, "bytes": "eA=="}.get(_type(field), 1)
        elif inner.full_name == "google.protobuf.Timestamp":
            value = "2026-01-31T08:00:00Z"
        elif inner.full_name == "google.protobuf.Duration":
            value = "3600s"
        elif inner.full_name == "google.protobuf.Struct":
            value = {"free": ["form", None, 1.5]}
        elif inner.full_name == "google.protobuf.FieldMask":
            value = "title"
        elif inner.has_options and inner.GetOptions().map_entry:
            found[field.name] = {"k": 1}
            continue
        else:
            value = filled(inner, depth + 1)
        found[field.name] = [value] if field.is_repeated else value
    return found


def _type(field: Any) -> str:
    names = {field.TYPE_STRING: "string", field.TYPE_BOOL: "bool", field.TYPE_BYTES: "bytes"}
    return names.get(field.type, "number")


@pytest.mark.parametrize("route", UNARY, ids=name)
async def test_each_route_calls_its_rpc_and_answers_as_its_document_says(
    gateway: RunningGateway, route: Route
) -> None:
    full = ParseDict(filled(route.response), GetMessageClass(route.response)())
    service = gateway.agent if route.service == "agent" else gateway.memory
    operation = document(keys=False)["paths"][route.path][route.method.lower()]
    described = operation["responses"]["200"]["content"]["application/json"]["schema"]
    schemas = document(keys=False)["components"]["schemas"]
    for answer in (full, GetMessageClass(route.response)()):
        service.answers[route.rpc.name] = answer
        user = {"user_id": "ann"}
        given: Any = {"params": user} if route.method == "GET" else {"json": user}
        reply = await gateway.client.request(
            route.method, route.path.replace("{memory_id}", "m1"), **given
        )
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["cache-control"] == "no-store"
        assert conforms(reply.json(), described, schemas), reply.json()
        assert service.asked[-1][0] == route.rpc.name
        assert service.request.user_id == "ann"
        assert ParseDict(reply.json(), GetMessageClass(route.response)()) == answer


async def test_request_ids_of_mutations_are_made_if_absent_and_kept_if_given(
    gateway: RunningGateway,
) -> None:
    for body in ({}, {}, {"request_id": "r1"}):
        await gateway.client.post(f"{MEMORY}/items", json={"user_id": "ann", **body})
    ids = [request.request_id for _, request in gateway.memory.asked]
    assert len(set(ids)) == 3
    assert all(ids)
    assert ids[2] == "r1"


async def test_a_patch_changes_the_fields_that_are_given(gateway: RunningGateway) -> None:
    memory = {"title": "t", "importance": 0.0, "expire_time": None, "version": "3"}
    await gateway.client.patch(f"{MEMORY}/items/m1", json={"user_id": "ann", "memory": memory})
    sent = gateway.memory.request
    assert list(sent.update_mask.paths) == ["title", "importance", "expire_time"]
    assert (sent.memory.memory_id, sent.memory.version) == ("m1", 3)
    assert sent.memory.HasField("importance")
    assert not sent.memory.HasField("expire_time")


@pytest.mark.parametrize(
    "mask",
    [
        "expire_time,title",
        "expireTime,title",
        " expire_time , title,",
        ["expireTime", "title"],
        {"paths": ["expire_time", "title"]},
    ],
)
@pytest.mark.parametrize("field", ["update_mask", "updateMask"])
async def test_a_mask_is_taken_in_every_form(
    gateway: RunningGateway, field: str, mask: object
) -> None:
    body = {"user_id": "ann", "memory": {"title": "t", "content": "c"}, field: mask}
    answer = await gateway.client.patch(f"{MEMORY}/items/m1", json=body)
    assert answer.status_code == 200
    assert list(gateway.memory.request.update_mask.paths) == ["expire_time", "title"]


@pytest.mark.parametrize("mask", [5, [1], {"path": "x"}, {"paths": "x"} | {"y": 1}])
async def test_a_mask_that_is_none_is_refused(gateway: RunningGateway, mask: object) -> None:
    answer = await gateway.client.patch(f"{MEMORY}/items/m1", json={"update_mask": mask})
    assert answer.status_code == 400
    assert answer.json()["error"]["violations"][0]["field"] == "update_mask"


async def test_settings_are_changed_by_what_is_given(gateway: RunningGateway) -> None:
    settings = {"memoryEnabled": False, "retention": "86400s"}
    await gateway.client.patch(f"{MEMORY}/settings", json={"user_id": "a", "settings": settings})
    assert list(gateway.memory.request.update_mask.paths) == ["memory_enabled", "retention"]
    await gateway.client.patch(f"{MEMORY}/settings", json={"user_id": "a"})
    assert list(gateway.memory.request.update_mask.paths) == []


async def test_ids_of_the_path_are_any_text_and_the_body_must_not_differ(
    gateway: RunningGateway,
) -> None:
    await gateway.client.get(f"{MEMORY}/items/a%2Fb%20%F0%9F%8C%8D", params={"user_id": "ann"})
    assert gateway.memory.request.memory_id == "a/b 🌍"
    await gateway.client.post(f"{MEMORY}/items/a%2Fb/restore", params={"user_id": "ann"})
    assert gateway.memory.asked[-1][0] == "RestoreMemory"
    assert gateway.memory.request.memory_id == "a/b"
    await gateway.client.request("DELETE", f"{MEMORY}/items/m1", json={"memory_id": "m1"})
    assert gateway.memory.request.memory_id == "m1"
    answer = await gateway.client.delete(f"{MEMORY}/items/m1", params={"memory_id": "m2"})
    assert answer.json()["error"]["violations"][0]["field"] == "memory_id"
    other = {"memory": {"memory_id": "m2", "title": "t"}}
    answer = await gateway.client.patch(f"{MEMORY}/items/m1", json=other)
    assert answer.json()["error"]["violations"][0]["field"] == "memory.memory_id"


async def test_a_field_in_the_query_and_in_the_body_is_refused(gateway: RunningGateway) -> None:
    answer = await gateway.client.request(
        "DELETE", f"{MEMORY}/items/m1", params={"user_id": "a"}, json={"user_id": "b"}
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["violations"][0]["field"] == "user_id"


async def test_unknown_fields_are_named_and_nothing_is_called(gateway: RunningGateway) -> None:
    answer = await gateway.client.post(f"{MEMORY}/retrieve", json={"user_id": "a", "querry": "x"})
    assert answer.status_code == 400
    assert answer.json()["error"]["violations"] == [
        {"field": "querry", "description": "is no field of this request"}
    ]
    assert not gateway.memory.asked


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_413_and_the_gateway_lives_on(
    gateway: RunningGateway, *, chunked: bool
) -> None:
    whole = b'{"query": "' + b"x" * (4 * 1024 * 1024) + b'"}'

    async def parts() -> Any:
        for start in range(0, len(whole), 65536):
            yield whole[start : start + 65536]

    body: Any = parts() if chunked else whole
    answer = await gateway.client.post(f"{MEMORY}/retrieve", content=body)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (413, "BODY_TOO_LARGE")
    assert (await gateway.client.get("/healthz")).status_code == 200


async def test_what_is_not_json_is_400(gateway: RunningGateway) -> None:
    answer = await gateway.client.post(f"{MEMORY}/retrieve", content=b"query=x")
    assert (answer.status_code, answer.json()["error"]["reason"]) == (400, "MALFORMED_JSON")


async def test_a_failure_keeps_its_code_and_details(gateway: RunningGateway) -> None:
    gateway.memory.answers["UpdateMemory"] = Failure(
        grpc.StatusCode.ABORTED, "STALE_VERSION", "the memory changed since it was read"
    )
    answer = await gateway.client.patch(f"{MEMORY}/items/m1", json={"memory": {"title": "t"}})
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert (error["code"], error["reason"]) == ("ABORTED", "STALE_VERSION")
    assert "retry-after" not in answer.headers
    assert error["request_id"] == answer.headers["x-request-id"]


async def test_a_long_failure_arrives_cut_with_its_code(gateway: RunningGateway) -> None:
    gateway.memory.answers["Retrieve"] = Failure(
        grpc.StatusCode.INVALID_ARGUMENT, "LONG", "渐" * 20_000
    )
    answer = await gateway.client.post(f"{MEMORY}/retrieve", json={})
    assert answer.status_code == 400
    assert len(answer.content) < 2048
    assert answer.json()["error"]["message"].startswith("渐渐")


async def test_an_unknown_failure_says_nothing_internal(gateway: RunningGateway) -> None:
    gateway.memory.answers["Retrieve"] = RuntimeError("password=hunter2")
    answer = await gateway.client.post(f"{MEMORY}/retrieve", json={})
    assert answer.status_code == 500
    assert "hunter2" not in answer.text


async def test_a_call_that_takes_too_long_is_504(run: Any) -> None:
    async with run(timeout=0.2) as gateway:
        gateway.memory.answers["Retrieve"] = 60.0
        answer = await gateway.client.post(f"{MEMORY}/retrieve", json={})
        assert answer.status_code == 504
        assert answer.json()["error"]["message"] == "the memory service took too long"


async def test_a_service_that_is_down_is_503_without_its_address(run: Any) -> None:
    async with run(memory_target="127.0.0.1:1", agent_target="127.0.0.1:1") as gateway:
        for answer in (
            await gateway.client.post(f"{MEMORY}/retrieve", json={}),
            await gateway.client.post(f"{AGENT}/chat", json={"message": "hi"}),
        ):
            assert answer.status_code == 503
            assert "127.0.0.1" not in answer.text
            assert "cannot be reached now" in answer.json()["error"]["message"]


async def test_service_tokens_are_sent(run: Any) -> None:
    async with run(token="hush") as gateway:
        gateway.agent.answers["GetContextStats"] = agent_pb2.GetContextStatsResponse()
        answers = [
            await gateway.client.get(f"{MEMORY}/stats", params={"user_id": "a"}),
            await gateway.client.get(f"{AGENT}/context-stats", params={"user_id": "a"}),
        ]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert gateway.agent.metadata[-1]["authorization"] == "Bearer hush"


async def test_a_wrong_service_token_is_the_gateways_fault_and_not_the_callers(run: Any) -> None:
    async with run(token="hush", agent_token="") as gateway:
        answer = await gateway.client.get(f"{AGENT}/conversation-list")
        assert answer.status_code == 500
        assert answer.json()["error"]["reason"] == "GATEWAY_NOT_ALLOWED"


async def test_the_request_id_goes_through_everything(gateway: RunningGateway) -> None:
    answer = await gateway.client.get(f"{MEMORY}/stats", headers={"X-Request-ID": "req-7"})
    assert answer.headers["x-request-id"] == "req-7"
    assert gateway.memory.metadata[-1]["x-request-id"] == "req-7"
    for odd in ("a b", "x" * 129, "ü"):
        headers = [(b"X-Request-ID", odd.encode("latin-1"))]
        answer = await gateway.client.get(f"{MEMORY}/stats", headers=headers)
        assert answer.headers["x-request-id"] not in {odd, "req-7"}
        assert gateway.memory.metadata[-1]["x-request-id"] == answer.headers["x-request-id"]


async def test_requests_at_the_same_time_keep_their_users_and_ids(gateway: RunningGateway) -> None:
    async def one(number: int) -> httpx.Response:
        headers = {"X-Request-ID": f"r{number}"}
        return await gateway.client.get(
            f"{MEMORY}/stats", params={"user_id": f"u{number}"}, headers=headers
        )

    answers = await asyncio.gather(*map(one, range(20)))
    assert [answer.headers["x-request-id"] for answer in answers] == [f"r{n}" for n in range(20)]
    pairs = {
        (request.user_id[1:], metadata["x-request-id"][1:])
        for (_, request), metadata in zip(
            gateway.memory.asked, gateway.memory.metadata, strict=True
        )
    }
    assert pairs == {(str(n), str(n)) for n in range(20)}


async def test_other_paths_and_methods_have_the_same_error_body(gateway: RunningGateway) -> None:
    missing = await gateway.client.get("/api/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["reason"]) == (404, "NO_SUCH_ROUTE")
    method = await gateway.client.get(f"{AGENT}/chat")
    assert (method.status_code, method.headers["allow"]) == (405, "POST")
    assert method.json()["error"]["reason"] == "METHOD_NOT_ALLOWED"


async def test_health_is_200_while_the_gateway_serves_and_says_what_it_reaches(run: Any) -> None:
    async with run() as gateway:
        answer = await gateway.client.get("/healthz")
        assert answer.status_code == 200
        assert answer.json() == {"status": "serving", "agent": "serving", "memory": "serving"}
    async with run(memory_target="127.0.0.1:1") as gateway:
        answer = await gateway.client.get("/healthz")
        assert answer.status_code == 200
        assert answer.json()["memory"] == "unreachable"


async def test_the_document_and_its_page_are_served(gateway: RunningGateway) -> None:
    served = await gateway.client.get("/openapi.json")
    assert served.json() == json.loads(json.dumps(document(keys=False)))
    page = await gateway.client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert f"{AGENT}/chat" in page.text


async def test_a_fault_of_the_gateway_says_nothing_internal(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_message: object) -> dict[str, Any]:
        text = "secret"
        raise RuntimeError(text)

    monkeypatch.setattr("gateway.endpoints.encode", broken)
    answer = await gateway.client.get(f"{MEMORY}/stats", params={"user_id": "a"})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (500, "INTERNAL")
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"]


async def test_a_client_that_leaves_inside_its_body_harms_nobody(gateway: RunningGateway) -> None:
    host, port = gateway.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = f"POST {MEMORY}/retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n"
    writer.write(head.encode() + b'{"query"')
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(PATIENCE):
        assert (await gateway.client.get("/healthz")).status_code == 200
    assert not gateway.memory.asked


async def test_a_memory_is_shown_with_defaults(gateway: RunningGateway) -> None:
    gateway.memory.answers["GetMemory"] = pb.GetMemoryResponse(memory=pb.Memory(content="🙂👩‍🚀"))
    answer = await gateway.client.get(f"{MEMORY}/items/m1", params={"user_id": "a"})
    shown = answer.json()["memory"]
    assert shown["content"] == "🙂👩‍🚀"
    assert shown["sensitivity_level"] == 0
