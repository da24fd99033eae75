"""The model that answers."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent_service.domain.model import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a model shall answer; empty and 0 mean the adapter's own setting."""

    model: str = ""
    thinking: str = ""
    max_output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ModelText:
    """More of the answer, whole characters, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelReasoning:
    """The model is thinking; its words stay inside the adapter, chars says how much it thought."""

    chars: int


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What the call used, as the model counted."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ModelFinish:
    """The end: stop, length, content_filter or tool_calls; exactly one comes, last."""

    reason: str


ModelEvent = ModelText | ModelReasoning | ModelUsage | ModelFinish


class Model(Protocol):
    """A chat model. Closing the generator closes the call."""

    def stream(
        self, messages: Sequence[Message], options: ModelOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        """Answer. Raises ModelUnavailable or ModelRefused, also in the middle."""
        ...
