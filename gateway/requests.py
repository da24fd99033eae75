"""An HTTP request → the message of its RPC: path, query and body, the user, ids and masks."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from starlette.requests import Request

from gateway.codec import Json, decode, field_of, json_object
from gateway.errors import Refusal, bad_request
from gateway.routes import Route
from gateway.sse import parse_event_id
from gateway.values import message_of
from rpc.errors import Failure, Violation
from rpc.ids import new_id

_MADE_IF_ABSENT = ("request_id", "client_message_id")
_NOT_IN_A_MASK = {"memory_id", "user_id", "version"}
_BOOLS = {"true": True, "1": True, "false": False, "0": False}
_MASK = "update_mask"
_UPPER = re.compile("[A-Z]")


async def read_request(request: Request, route: Route, user: str, max_bytes: int) -> Any:
    """Give the message that the RPC takes; user is the caller, "" if the request may name any.

    request_id and client_message_id are made where they are absent. Raises Refusal: 400 with the
    fields that are not right, 403 for another user, 413 for a body over max_bytes.
    """
    given = query_values(request.query_params.multi_items(), route)
    if route.takes_body:
        body = json_object(await read_body(request, max_bytes))
        both = [Violation(name[:64], "is given twice") for name in body if name in given]
        if both:
            raise bad_request(both)
        given |= body
    if route.resumes:
        given = _resumed(given, request.headers.get("last-event-id", ""))
    mask = _taken_mask(given) if route.patched else None
    message: Any = decode(given, route.request)
    if mask is not None:
        patched = message_of(route.request.fields_by_name[route.patched])
        changed = given.get(route.patched) or {}
        message.update_mask.paths.extend(mask or _names(changed, patched))
    if route.path_field:
        _fill(message, route.path_field, request.path_params["memory_id"])
    _own(message, user)
    for name in _MADE_IF_ABSENT:
        if name in route.request.fields_by_name and not getattr(message, name):
            setattr(message, name, new_id())
    return message


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Give the body. Raises Refusal 413 as soon as it is too long."""
    announced = request.headers.get("content-length", "0")
    body = bytearray()
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > max_bytes:
        raise _too_large(max_bytes)
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def query_values(items: Iterable[tuple[str, str]], route: Route) -> Json:
    """Give the query as JSON values: by field, repeated ones as often as they stand there.

    Raises Refusal for a field that the request does not have, or given too often.
    """
    found: Json = {}
    violations: list[Violation] = []
    for name, text in items:
        field = field_of(route.request, name) if route.takes_query else None
        if route.resumes and name == "last_event_id":
            found[name] = text
        elif field is None or field.message_type is not None:
            violations.append(Violation(name[:64], "is no field that the query takes here"))
        elif field.is_repeated:
            found.setdefault(field.name, []).append(_typed(field, text))
        elif field.name in found:
            violations.append(Violation(field.name, "is given twice"))
        else:
            found[field.name] = _typed(field, text)
    if violations:
        raise bad_request(violations)
    return found


def _typed(field: FieldDescriptor, text: str) -> Any:
    # json_format reads numbers and enum names from text, but not booleans; clean of surrogates
    return _BOOLS.get(text, text) if field.cpp_type == field.CPPTYPE_BOOL else text


def _resumed(given: Json, header: str) -> Json:
    """Go on after Last-Event-ID, which a browser sends by itself and which goes before the rest."""
    asked = given.pop("last_event_id", "")
    if not (header or asked):
        return given
    place = parse_event_id(header or asked)
    if place is None:
        form = "must be conversation_id/turn_id/seq as an event's id gives it"
        raise bad_request([Violation("Last-Event-ID" if header else "last_event_id", form)])
    named = {"conversation_id": place.conversation_id, "turn_id": place.turn_id}
    others = [name for name, value in named.items() if given.get(name, value) != value]
    if others:
        raise bad_request([Violation(name, "is not that of Last-Event-ID") for name in others])
    return {**given, **named, "after_seq": place.seq}


def _taken_mask(given: Json) -> list[str]:
    """Take update_mask out: "a,b" or ["a", "b"] or {"paths": […]}, in snake_case or camelCase."""
    mask = given.pop(_MASK, None)
    mask = given.pop("updateMask", None) if mask is None else mask
    if isinstance(mask, dict) and set(mask) <= {"paths"}:
        mask = mask.get("paths", [])
    if isinstance(mask, str):
        mask = mask.split(",")
    paths = [] if mask is None else mask
    if not (isinstance(paths, list) and all(isinstance(path, str) for path in paths)):
        raise bad_request([Violation(_MASK, 'must be field names such as "title,content"')])
    return [_snake(path.strip()) for path in paths if path.strip()]


def _names(changed: Mapping[str, Any], patched: Descriptor) -> Iterator[str]:
    """Name the fields that the body gives, null ones too, without those that say which memory."""
    names = (field.name for name in changed if (field := field_of(patched, name)) is not None)
    yield from (name for name in names if name not in _NOT_IN_A_MASK)


def _snake(path: str) -> str:
    return _UPPER.sub(lambda upper: "_" + upper[0].lower(), path)


def _fill(message: Any, path: str, value: str) -> None:
    """Put the id of the path into the message; the body may repeat it and nothing else."""
    *parents, name = path.split(".")
    for parent in parents:
        message = getattr(message, parent)
    if getattr(message, name) not in {"", value}:
        raise bad_request([Violation(path, "is not that of the path")])
    setattr(message, name, value)


def _own(message: Any, user: str) -> None:
    """Make the caller the owner. Raises Refusal 403 if the request names anybody else."""
    if not user:
        return
    if any(named != user for named in _users(message)):
        text = "the request names another user than its key"
        failure = Failure(grpc.StatusCode.PERMISSION_DENIED, "ANOTHER_USER", text)
        raise Refusal(failure)
    message.user_id = user


def _users(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        if field.name == "user_id":
            yield value
        elif field.message_type is not None:
            inner = value if field.is_repeated else [value]
            for item in inner:
                if isinstance(item, Message):
                    yield from _users(item)


def _too_large(max_bytes: int) -> Refusal:
    text = f"the body is larger than {max_bytes} bytes"
    failure = Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "BODY_TOO_LARGE", text)
    return Refusal(failure, status=413)
