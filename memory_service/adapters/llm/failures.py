"""What a model server's failures mean; the texts are ours, safe to keep and to show."""

import re
from collections.abc import Mapping

from memory_service.domain.errors import ModelUnavailable, ModelUnreadable

AWAY = frozenset({401, 402, 404, 407, 408, 409, 425, 429})
"""Client errors that say nothing about this turn: no key, no money, no such model, too many calls.

403 is none of them: some APIs answer it to a text that their moderation does not let through.
"""
SILENT = "the model was silent for too long"
UNREACHED = "the model cannot be reached"
BREAKER_OPEN = "the model did not answer lately, and is not asked for a while"
GARBLED = "what answers is no model"
FILTERED = "the model's answer was held back by a content filter"
REFUSED = "the model refuses to answer"
EMPTY = "the model's answer is empty"
CUT_OFF = "the model's answer ended early"

_CODE = re.compile(r"[a-z][a-z_]{2,47}")


def failure_of(status: int, error: object, *, key: str) -> ModelUnavailable | ModelUnreadable:
    """Say what an HTTP status means; error is the body's error object, if there is one."""
    detail = f"HTTP {status}{_code(error, key)}"
    if status in AWAY or not 400 <= status < 500:  # noqa: PLR2004 - all of the server's own errors
        return ModelUnavailable(f"the model does not answer now ({detail})")
    return ModelUnreadable(f"the model does not take this turn ({detail})")


def _code(error: object, key: str) -> str:
    """Give the provider's word for it if it is a plain code, such as context_length_exceeded."""
    if not isinstance(error, Mapping):
        return ""
    for name in ("code", "type"):
        word = error.get(name)
        if isinstance(word, str) and _CODE.fullmatch(word) and not (key and key in word):
            return f", {word}"
    return ""
