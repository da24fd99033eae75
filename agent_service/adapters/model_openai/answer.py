"""One streamed answer: chunks in, model events out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_service.adapters.model_openai.failures import (
    CUT_OFF,
    GARBLED,
    BrokenOff,
    failure_inside,
)
from agent_service.adapters.model_openai.sse import DONE
from agent_service.adapters.model_openai.text import ThinkTags, WholeCharacters
from agent_service.domain.errors import ModelUnavailable
from agent_service.ports import ModelEvent, ModelFinish, ModelReasoning, ModelText, ModelUsage

_FINISH: Mapping[str, str] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
"""By what servers say; all else is stop, such as eos and end_turn."""
_BROKEN = frozenset({"error", "abort", "cancelled", "insufficient_system_resource"})
"""Finishes that are none."""


class Answer:
    """What came so far. Fields that are null, absent or of another shape say nothing."""

    def __init__(self, key: str = "") -> None:
        self.begun = False
        """The model has said, thought or called something."""
        self.finish = ""
        self.done = False
        """[DONE] came."""
        self._key = key
        self._usage: ModelUsage | None = None
        self._characters = WholeCharacters()
        self._tags = ThinkTags()

    @property
    def complete(self) -> bool:
        """Tell whether the connection may end now."""
        return self.done or bool(self.finish)

    def take(self, data: str) -> Sequence[ModelEvent]:
        """Take one chunk. Raises BrokenOff, ModelRefused, ModelUnavailable."""
        if self.done or data.startswith(DONE):
            self.done = True
            return []
        chunk = _read(data)
        if chunk.get("error") or chunk.get("object") == "error":
            raise failure_inside(chunk.get("error") or chunk, key=self._key)
        self._usage = _usage(chunk.get("usage")) or self._usage
        choice = _first(chunk.get("choices"))
        self._end_with(choice.get("finish_reason"))
        return self._say(_mapping(choice.get("delta")))

    def end(self) -> Sequence[ModelEvent]:
        """Give what is left: held text, usage, finish. Raises BrokenOff if it ended too early."""
        if not self.complete:
            raise BrokenOff(CUT_OFF)
        shown, hidden = self._tags.feed(self._characters.feed("", final=True))
        usage = [self._usage] if self._usage else []
        finish = ModelFinish(_FINISH.get(self.finish, "stop"))
        return [*_events(shown + self._tags.end(), hidden), *usage, finish]

    def _end_with(self, reason: Any) -> None:
        if isinstance(reason, str) and reason:
            self.finish = reason.lower()
        if self.finish in _BROKEN:
            raise BrokenOff(CUT_OFF)

    def _say(self, delta: Mapping[str, Any]) -> Sequence[ModelEvent]:
        text = _text(delta.get("content")) or _text(delta.get("refusal"))
        thought = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        said = (text, thought, self.finish, delta.get("tool_calls"), _thoughts(delta))
        self.begun = self.begun or any(said)
        shown, hidden = self._tags.feed(self._characters.feed(text))
        return _events(shown, hidden + len(thought) + _thoughts(delta))


def _read(data: str) -> Mapping[str, Any]:
    try:
        chunk = json.loads(data)
    except ValueError:
        chunk = None
    if not isinstance(chunk, Mapping):
        raise ModelUnavailable(GARBLED)
    return chunk


def _events(shown: str, hidden: int) -> list[ModelEvent]:
    reasoning: list[ModelEvent] = [ModelReasoning(hidden)] if hidden else []
    return reasoning + ([ModelText(shown)] if shown else [])


def _text(content: Any) -> str:
    """Give the words of a content: a text, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [_mapping(part) for part in content]
    return "".join(_text(part.get("text")) for part in parts if part.get("type") == "text")


def _thoughts(delta: Mapping[str, Any]) -> int:
    """Count the parts of a content that are thoughts."""
    content = delta.get("content")
    parts = content if isinstance(content, list) else []
    return sum(_mapping(part).get("type") == "thinking" for part in parts)


def _usage(usage: Any) -> ModelUsage | None:
    counts = [_mapping(usage).get(f"{what}_tokens") for what in ("prompt", "completion")]
    prompt, completion = (
        count if isinstance(count, int) and not isinstance(count, bool) else 0 for count in counts
    )
    return ModelUsage(prompt, completion) if prompt > 0 and completion >= 0 else None


def _first(choices: Any) -> Mapping[str, Any]:
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
