"""OpenAPI 3.1, made from the route table and the descriptors of the protos."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from gateway.errors import HTTP_STATUS
from gateway.routes import ROUTES, Route
from gateway.sse import MEDIA_TYPE
from gateway.values import (
    DURATION,
    FIELD_MASK,
    FLOATS,
    INT32,
    INT64,
    STRUCT,
    TIMESTAMP,
    is_map,
    message_of,
)

Schema: TypeAlias = dict[str, Any]
VERSION = "0.1.0"
_TEXT: Schema = {"type": "string"}
_BYTES: Schema = {"type": "string", "contentEncoding": "base64"}
_SCALARS: dict[int, Schema] = {
    **{kind: {"type": "integer", "format": "int32"} for kind in INT32},
    **{kind: {"type": ["string", "integer"], "format": "int64"} for kind in INT64},
    **{kind: {"type": "number"} for kind in FLOATS},
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_STRING: _TEXT,
}
_WELL_KNOWN: dict[str, Schema] = {
    TIMESTAMP: {"type": "string", "format": "date-time"},
    DURATION: {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]{1,9})?s$"},
    STRUCT: {"type": "object"},
    FIELD_MASK: {
        "type": ["string", "array", "object"],
        "items": _TEXT,
        "description": 'Field names: "a,b", ["a", "b"] or {"paths": ["a", "b"]}. '
        "Absent: the fields that are given.",
    },
}
_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "reason", "message", "violations", "request_id"],
            "properties": {
                "code": {"type": "string", "enum": sorted(code.name for code in HTTP_STATUS)},
                "reason": {"type": "string", "description": "UPPER_SNAKE_CASE, stable"},
                "message": {"type": "string", "description": "For people"},
                "violations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["field", "description"],
                        "properties": {"field": _TEXT, "description": _TEXT},
                    },
                },
                "request_id": {"type": "string", "description": "As in X-Request-ID"},
            },
        }
    },
}
_HEALTH: Schema = {
    "type": "object",
    "required": ["status", "agent", "memory"],
    "properties": {
        "status": {"const": "serving"},
        "agent": {"enum": ["serving", "not_serving", "unreachable"]},
        "memory": {"enum": ["serving", "not_serving", "unreachable"]},
    },
}
_EVENTS = (
    "Server-sent events. event: name of what the ChatEvent holds; data: the ChatEvent as JSON on "
    "one line; id: conversation_id/turn_id/seq, each percent-encoded. Exactly one of done and "
    "error comes last. An error without id, seq 0, is the gateway's: resume after the last id."
)


def document(*, keys: bool) -> Schema:
    """Give the document; keys: requests need an API key."""
    schemas: dict[str, Schema] = {"Error": _ERROR}
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    paths["/healthz"] = {"get": _health()}
    found: Schema = {
        "openapi": "3.1.0",
        "info": {
            "title": "Memory gateway",
            "version": VERSION,
            "description": "Bodies are the request messages of agent_service.v1 and "
            "memory_service.v1 as JSON; answers print defaults, and int64 as text.",
        },
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }
    if keys:
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"key": []}]
    return found


def _operation(route: Route, schemas: dict[str, Schema]) -> Schema:
    found: Schema = {
        "operationId": f"{route.method.lower()}{route.rpc.name}",
        "summary": route.summary,
        "description": f"{route.rpc.full_name}",
        "tags": [route.service],
        "parameters": list(_parameters(route, schemas)),
        "responses": {"200": _answer(route, schemas), "default": _refused()},
    }
    if route.resumes:
        found["responses"]["204"] = {"description": "Nothing is left: the turn is over"}
    if route.takes_body:
        found["requestBody"] = {
            "required": not route.takes_query,
            "content": {"application/json": {"schema": _reference(route.request, schemas)}},
        }
    return found


def _parameters(route: Route, schemas: dict[str, Schema]) -> Iterable[Schema]:
    if route.path_field:
        yield {"name": "memory_id", "in": "path", "required": True, "schema": _TEXT}
    fields = route.request.fields if route.takes_query else []
    for field in fields:
        if field.message_type is None and field.name != route.path_field:
            yield {"name": field.name, "in": "query", "schema": _field(field, schemas)}
    if route.resumes:
        form = "conversation_id/turn_id/seq, instead of the three fields"
        yield {"name": "last_event_id", "in": "query", "schema": _TEXT, "description": form}
        yield {"name": "Last-Event-ID", "in": "header", "schema": _TEXT, "description": form}


def _answer(route: Route, schemas: dict[str, Schema]) -> Schema:
    if not route.streams:
        schema = _reference(route.response, schemas)
        return {
            "description": route.response.name,
            "content": {"application/json": {"schema": schema}},
        }
    event = _reference(message_of(route.response.fields_by_name["event"]), schemas)
    return {
        "description": _EVENTS,
        "headers": {"X-Conversation-ID": {"schema": _TEXT, "description": "Percent-encoded"}},
        "content": {MEDIA_TYPE: {"schema": _TEXT, "x-event-data": event}},
    }


def _refused() -> Schema:
    return {
        "description": "Refused; Retry-After says when to try again, where that helps",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def _health() -> Schema:
    return {
        "operationId": "getHealth",
        "summary": "Say that the gateway serves, and what it reaches",
        "security": [],
        "responses": {
            "200": {
                "description": "The gateway serves",
                "content": {"application/json": {"schema": _HEALTH}},
            }
        },
    }


def _reference(kind: Descriptor | EnumDescriptor, schemas: dict[str, Schema]) -> Schema:
    """Name a message or an enum, and describe it once."""
    name = kind.full_name
    if name not in schemas:
        schemas[name] = {}  # stands here already for messages inside themselves
        schemas[name] |= (
            _enum(kind) if isinstance(kind, EnumDescriptor) else _message(kind, schemas)
        )
    return {"$ref": f"#/components/schemas/{name}"}


def _message(kind: Descriptor, schemas: dict[str, Schema]) -> Schema:
    found: Schema = {
        "type": "object",
        "properties": {field.name: _field(field, schemas) for field in kind.fields},
        "additionalProperties": False,
    }
    choices = [oneof for oneof in kind.oneofs if len(oneof.fields) > 1]
    if choices:
        found["description"] = " ".join(
            "At most one of " + ", ".join(field.name for field in oneof.fields) + "."
            for oneof in choices
        )
    return found


def _enum(kind: EnumDescriptor) -> Schema:
    return {"type": "string", "enum": [value.name for value in kind.values]}


def _field(field: FieldDescriptor, schemas: dict[str, Schema]) -> Schema:
    if is_map(field):
        values = _one(message_of(field).fields_by_name["value"], schemas)
        return {"type": "object", "additionalProperties": values}
    one = _one(field, schemas)
    return {"type": "array", "items": one} if field.is_repeated else one


def _one(field: FieldDescriptor, schemas: dict[str, Schema]) -> Schema:
    if field.message_type is not None:
        kind = message_of(field)
        return _WELL_KNOWN.get(kind.full_name) or _reference(kind, schemas)
    if field.enum_type is not None:
        return _reference(field.enum_type, schemas)
    return _BYTES if field.type == field.TYPE_BYTES else _SCALARS[field.cpp_type]
