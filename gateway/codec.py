"""JSON ↔ protobuf, by google's json_format, with refusals that name the field.

Field names are those of the proto (camelCase is understood too), enums are names, int64 may be
a number or a string, and answers print defaults.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gateway.errors import bad_request, malformed
from gateway.values import expectation, is_map, is_plain_message, message_of
from rpc.errors import Violation

Json: TypeAlias = dict[str, Any]
MAX_DEPTH = 24
MAX_VIOLATIONS = 20
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(message: Message) -> Json:
    """Give a message as JSON."""
    found: Json = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def json_object(raw: bytes) -> Json:
    """Read a body; an empty one is an empty object. Lone surrogates become U+FFFD.

    Raises Refusal for what is not a JSON object in UTF-8, has a key twice, numbers that JSON does
    not know, or more than MAX_DEPTH levels.
    """
    if not raw.strip():
        return {}
    try:
        value = json.loads(
            raw.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
        clean = _clean(value, MAX_DEPTH)
    except (ValueError, RecursionError) as error:
        raise malformed(_what_is_wrong(error)) from None
    if not isinstance(clean, dict):
        text = "the body must be a JSON object"
        raise malformed(text)
    return clean


def _what_is_wrong(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return "the body must be JSON in UTF-8"
        case json.JSONDecodeError(msg=text, lineno=line, colno=column):
            return f"the body is not JSON: {text} at line {line}, column {column}"
        case _BadJson():
            return f"the body is not acceptable JSON: {error}"
        case _:
            return "the body is not acceptable JSON: a number or a nesting is too long"


def decode(value: Mapping[str, Any], kind: Descriptor) -> Message:
    """Read a message of that kind. Raises Refusal, which names each field that is not right."""
    violations = list(_unknown(value, kind, ""))
    if violations:
        raise bad_request(violations[:MAX_VIOLATIONS])
    message = GetMessageClass(kind)()
    try:
        return ParseDict(dict(value), message)
    except ParseError:
        violations = list(_misfits(value, kind, ""))
        together = Violation("", "these fields exclude each other")
        raise bad_request(violations[:MAX_VIOLATIONS] or [together]) from None


def field_of(kind: Descriptor, name: str) -> FieldDescriptor | None:
    """Find a field by its name in the proto or in camelCase."""
    named: FieldDescriptor | None = kind.fields_by_name.get(name)
    return named or next((field for field in kind.fields if field.json_name == name), None)


def _unknown(value: object, kind: Descriptor, at: str) -> Iterator[Violation]:
    """Find fields that the message does not have, or that are given under both names."""
    if not isinstance(value, dict):
        return
    seen: set[str] = set()
    for name, given in value.items():
        field = field_of(kind, name)
        if field is None:
            yield Violation(f"{at}{name[:64]}", "is no field of this request")
            continue
        if field.name in seen:
            yield Violation(f"{at}{field.name}", "is given twice")
        seen.add(field.name)
        for item, place in _messages_in(field, given, f"{at}{field.name}"):
            yield from _unknown(item, message_of(field), f"{place}.")


def _misfits(value: Mapping[str, Any], kind: Descriptor, at: str) -> Iterator[Violation]:
    """Find the innermost fields whose values are not of their type."""
    for name, given in value.items():
        field = field_of(kind, name)
        if field is None or _fits({name: given}, kind):
            continue
        inner = [
            violation
            for item, place in _messages_in(field, given, f"{at}{field.name}")
            if isinstance(item, dict)
            for violation in _misfits(item, message_of(field), f"{place}.")
        ]
        yield from inner or [Violation(f"{at}{field.name}", expectation(field))]


def _messages_in(field: FieldDescriptor, given: object, at: str) -> Iterator[tuple[object, str]]:
    if is_map(field) or not is_plain_message(field):
        return
    if field.is_repeated and isinstance(given, list):
        yield from ((item, f"{at}[{index}]") for index, item in enumerate(given))
    elif not field.is_repeated:
        yield given, at


def _fits(value: Json, kind: Descriptor) -> bool:
    try:
        ParseDict(value, GetMessageClass(kind)())
    except ParseError:
        return False
    return True


class _BadJson(ValueError):
    """JSON that parsers disagree about."""


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        message = "a key stands twice in one object"
        raise _BadJson(message)
    return found


def _no_constant(name: str) -> NoReturn:
    message = f"{name} is no number of JSON"
    raise _BadJson(message)


def _clean(value: Any, depth: int) -> Any:
    """Replace lone surrogates, which protobuf and every database refuse."""
    if not depth:
        message = f"more than {MAX_DEPTH} levels"
        raise _BadJson(message)
    match value:
        case str():
            return _LONE_SURROGATE.sub("\ufffd", value)
        case list():
            return [_clean(item, depth - 1) for item in value]
        case dict():
            return {_clean(key, depth): _clean(item, depth - 1) for key, item in value.items()}
        case _:
            return value
