"""What the fields of the protos are in JSON, for reading queries, for refusals and for OpenAPI."""

from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_F = FieldDescriptor
INT32 = (_F.CPPTYPE_INT32, _F.CPPTYPE_UINT32)
INT64 = (_F.CPPTYPE_INT64, _F.CPPTYPE_UINT64)
FLOATS = (_F.CPPTYPE_DOUBLE, _F.CPPTYPE_FLOAT)

TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
STRUCT = "google.protobuf.Struct"
FIELD_MASK = "google.protobuf.FieldMask"
WELL_KNOWN: Mapping[str, str] = MappingProxyType(
    {
        TIMESTAMP: "a time such as 2026-01-31T08:00:00Z",
        DURATION: 'seconds such as "3600s"',
        STRUCT: "an object",
        FIELD_MASK: 'field names such as "title,content"',
    }
)
"""Messages that JSON writes in a way of their own."""


def message_of(field: FieldDescriptor) -> Descriptor:
    """Give the message of a field that holds messages."""
    kind: Descriptor | None = field.message_type
    if kind is None:
        raise TypeError(field.full_name)
    return kind


def is_map(field: FieldDescriptor) -> bool:
    """Tell whether a field is a map, which descriptors call a list of entries."""
    return (
        field.message_type is not None
        and field.message_type.has_options
        and field.message_type.GetOptions().map_entry
    )


def is_plain_message(field: FieldDescriptor) -> bool:
    """Tell whether a value of the field is a JSON object with the fields of its message."""
    return field.message_type is not None and field.message_type.full_name not in WELL_KNOWN


def expectation(field: FieldDescriptor) -> str:
    """Say what a field takes."""
    one = _one(field)
    if is_map(field):
        return "must be an object"
    return f"must be a list, each {one}" if field.is_repeated else f"must be {one}"


def _one(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return WELL_KNOWN.get(field.message_type.full_name, "an object")
    if field.enum_type is not None:
        return "one of " + ", ".join(value.name for value in field.enum_type.values)
    if field.cpp_type in INT32 or field.cpp_type in INT64:
        return "a whole number in range"
    if field.cpp_type in FLOATS:
        return "a number"
    if field.cpp_type == _F.CPPTYPE_BOOL:
        return "true or false"
    return "text" if field.type == _F.TYPE_STRING else "text in base64"
