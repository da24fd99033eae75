"""The OpenAPI document and its page say what the routes do."""

import json
import re
from collections.abc import Iterator
from typing import Any

from gateway.docs_page import page
from gateway.openapi import document
from gateway.routes import ROUTES

DOCUMENT = document(keys=False)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def operation(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][path][method]
    return found


def test_every_route_stands_in_it_and_nothing_else() -> None:
    listed = {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
    }
    assert listed == {(r.method, r.path) for r in ROUTES} | {("GET", "/healthz")}
    names = [o["operationId"] for ops in DOCUMENT["paths"].values() for o in ops.values()]
    assert len(names) == len(set(names))


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    used = {reference.removeprefix("#/components/schemas/") for reference in references(DOCUMENT)}
    assert used == set(DOCUMENT["components"]["schemas"])


def test_requests_of_routes_with_a_query_have_only_fields_that_fit_one() -> None:
    for route in ROUTES:
        if route.takes_query:
            assert all(field.message_type is None for field in route.request.fields), route.path


def test_fields_stand_where_they_are_taken() -> None:
    listing = operation("get", "/api/v1/memory/items")
    assert {p["name"] for p in listing["parameters"]} >= {"user_id", "memory_types", "text"}
    assert "requestBody" not in listing
    chat = operation("post", "/api/v1/agent/chat")
    assert chat["parameters"] == []
    assert chat["requestBody"]["required"]
    assert set(chat["responses"]["200"]["content"]) == {"text/event-stream"}
    delete = operation("delete", "/api/v1/memory/items/{memory_id}")
    assert not delete["requestBody"]["required"]
    assert {(p["name"], p["in"]) for p in delete["parameters"]} == {
        ("memory_id", "path"),
        ("user_id", "query"),
        ("request_id", "query"),
    }
    resume = operation("get", "/api/v1/agent/chat/resume")
    assert "204" in resume["responses"]
    assert ("Last-Event-ID", "header") in {(p["name"], p["in"]) for p in resume["parameters"]}


def test_schemas_say_how_json_writes_a_message() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    memory = schemas["memory_service.v1.Memory"]["properties"]
    assert memory["version"] == {"type": ["string", "integer"], "format": "int64"}
    assert memory["expire_time"] == {"type": "string", "format": "date-time"}
    assert memory["metadata"] == {"type": "object"}
    assert memory["event_ids"] == {"type": "array", "items": {"type": "string"}}
    assert "MEMORY_TYPE_FACT" in schemas["memory_service.v1.MemoryType"]["enum"]
    event = schemas["agent_service.v1.ChatEvent"]
    assert "At most one of started, memory_used" in event["description"]
    used = schemas["agent_service.v1.MemoryUsed"]["properties"]["dropped"]
    assert used["additionalProperties"] == {"type": "integer", "format": "int32"}
    component = schemas["agent_service.v1.ContextComponentReport"]["properties"]["sha256"]
    assert component["contentEncoding"] == "base64"


def test_with_keys_it_says_that_requests_need_one_and_health_does_not() -> None:
    assert "security" not in DOCUMENT
    keyed = document(keys=True)
    assert keyed["security"] == [{"key": []}]
    assert keyed["paths"]["/healthz"]["get"]["security"] == []


def test_it_is_json() -> None:
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT


def test_the_page_shows_all_of_it_and_loads_nothing() -> None:
    shown = page(DOCUMENT)
    for route in ROUTES:
        assert f"</span>{route.path}</code>" in shown
    for name in DOCUMENT["components"]["schemas"]:
        assert f'id="{name}"' in shown
    assert re.findall(r'(?:src|href)="(?!#)([^"]*)"', shown) == ["/openapi.json"]
    assert "<script" not in shown
    assert "url(" not in shown


def test_the_page_takes_names_as_text() -> None:
    odd = {**DOCUMENT, "info": {"title": "<b>", "description": "a & b"}}
    assert "<h1>&lt;b&gt;</h1><p>a &amp; b" in page(odd)
