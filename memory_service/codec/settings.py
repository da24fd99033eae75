"""UserSettings, the message ↔ the domain's."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from memory_service.codec.checks import Checks
from memory_service.codec.words import MEMORY_TYPE_OF, MEMORY_TYPES
from memory_service.domain.model import UserSettings
from memory_service.v1 import memory_pb2 as pb


def settings_message(settings: UserSettings) -> pb.UserSettings:
    """Give settings as in force; types in the order of the proto."""
    return pb.UserSettings(
        memory_enabled=settings.memory_enabled,
        implicit_memory_enabled=settings.implicit_memory_enabled,
        sensitive_memory_enabled=settings.sensitive_memory_enabled,
        disabled_types=sorted(MEMORY_TYPE_OF[word] for word in settings.disabled_types),
        retention=duration(settings.retention),
        verbatim_turns_enabled=settings.verbatim_turns_enabled,
    )


def duration(span: timedelta | None) -> Duration | None:
    """Give a span, None for none."""
    if span is None:
        return None
    message = Duration()
    message.FromTimedelta(span)
    return message


def _retention(check: Checks, field: str, message: pb.UserSettings) -> timedelta | None:
    return check.retention(field, message.retention) if message.HasField("retention") else None


SETTINGS: Mapping[str, Callable[[Checks, str, pb.UserSettings], Any]] = {
    "memory_enabled": lambda _check, _field, m: m.memory_enabled,
    "implicit_memory_enabled": lambda _check, _field, m: m.implicit_memory_enabled,
    "sensitive_memory_enabled": lambda _check, _field, m: m.sensitive_memory_enabled,
    "disabled_types": lambda check, field, m: check.words(field, m.disabled_types, MEMORY_TYPES),
    "retention": _retention,
    "verbatim_turns_enabled": lambda _check, _field, m: m.verbatim_turns_enabled,
}
"""What a mask may name, and how each is read."""
