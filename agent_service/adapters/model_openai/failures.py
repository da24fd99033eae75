"""What a model server's failures mean; texts are ours, safe to show to anybody."""

import re
from collections.abc import Mapping
from typing import Any

import openai

from agent_service.domain.errors import ModelRefused

PASSING = frozenset({408, 409, 425, 429})
"""Client errors that are worth another attempt, as are all of the server's (5xx)."""
UNREACHED = "the model cannot be reached"
SILENT = "the model was silent for too long"
CUT_OFF = "the model's answer ended early"
GARBLED = "the model's answer cannot be read"
_CODE = re.compile(r"[a-z][a-z_]{2,47}")


class BrokenOff(Exception):
    """No answer, or no more of it: worth another attempt if nothing of it was shown yet."""

    def __init__(self, text: str, *, pause: float = 0.0) -> None:
        super().__init__(text)
        self.text = text
        self.pause = pause
        """Seconds that the server asks to wait."""


def failure_of(error: openai.APIStatusError, *, key: str) -> BrokenOff | ModelRefused:
    """Say what an HTTP status means."""
    status = error.status_code
    detail = f"HTTP {status}{_code(error.body, key)}"
    if status in PASSING or status >= 500:  # noqa: PLR2004 — the server's own errors
        text = f"the model does not answer now ({detail})"
        return BrokenOff(text, pause=_retry_after(error.response.headers))
    return ModelRefused(f"the model does not take this request ({detail})")


def failure_inside(error: Any, *, key: str) -> BrokenOff | ModelRefused:
    """Say what an error object in the middle of an answer means; a status in it decides."""
    status = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(status, int) and 400 <= status < 500 and status not in PASSING:  # noqa: PLR2004
        return ModelRefused(f"the model does not take this request ({status}{_code(error, key)})")
    return BrokenOff(f"the model broke its answer off{_code(error, key)}")


def _code(body: object, key: str) -> str:
    """Give the provider's word for it if it is a plain code, such as context_length_exceeded."""
    if not isinstance(body, Mapping):
        return ""
    for name in ("code", "type"):
        word = body.get(name)
        if isinstance(word, str) and _CODE.fullmatch(word) and not (key and key in word):
            return f", {word}"
    return ""


def _retry_after(headers: Mapping[str, str]) -> float:
    """Give the seconds asked for; 0 if none are, or a date is given."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(float(headers[name]) * unit, 0.0)
        except (KeyError, ValueError):
            continue
    return 0.0
