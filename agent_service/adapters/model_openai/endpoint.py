"""Where a model is, how long to wait for it, and how to ask it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent_service.domain.model import Message
from agent_service.domain.text import clean_text
from agent_service.ports import ModelOptions

OPENAI = "https://api.openai.com/v1"
ANY_MODEL = "default"
"""Asked for where no model is named; servers of a single model do not look."""


class ThinkingForm(StrEnum):
    """How an API is told to think or not; `auto` is told by saying nothing."""

    REASONING_EFFORT = "reasoning_effort"
    """OpenAI and Ollama: none, medium."""
    CHAT_TEMPLATE = "chat_template"
    """vLLM, SGLang, llama.cpp: chat_template_kwargs.enable_thinking."""
    ENABLE_THINKING = "enable_thinking"
    """Qwen's own API."""
    THINKING_TYPE = "thinking_type"
    """DeepSeek's and GLM's own APIs: thinking.type enabled, disabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """What to ask, and for how long; durations are seconds. Raises ValueError.

    base_url ends before `/chat/completions`; empty: OpenAI's own. An empty api_key sends none.
    """

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""
    """Where a request names none."""
    thinking: str = ""
    """off, on or auto, where a request says nothing. Empty: nothing is sent."""
    thinking_form: ThinkingForm | None = None
    """None: reasoning_effort for OpenAI's own API, chat_template for all others."""
    max_output_tokens: int = 0
    """Where a request says nothing. 0: as the model likes."""
    connect_timeout: float = 10.0
    first_timeout: float = 60.0
    """From the request to the first token, retries included."""
    idle_timeout: float = 60.0
    """Between tokens; comments that keep a connection alive are no tokens."""
    attempts: int = 3
    longest_pause: float = 10.0
    """Between attempts. A server that asks for more (Retry-After) is not asked again."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            message = "the model's base URL begins with http:// or https://"
            raise ValueError(message)
        if not (self.api_key.isascii() and self.api_key.isprintable()):
            message = "the model's key has characters that no header can carry"
            raise ValueError(message)

    @property
    def url(self) -> str:
        """Give the base URL."""
        return self.base_url or OPENAI

    @property
    def is_openai(self) -> bool:
        """Tell whether this is OpenAI's own API, which alone has dropped some older words."""
        return self.url.startswith("https://api.openai.com/")


def model_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Give the messages as JSON; blank ones are left out, since many servers refuse them."""
    return [
        {"role": message.role.value, "content": text}
        for message in messages
        if (text := clean_text(message.content)).strip()
    ]


def needed_fields(endpoint: ModelEndpoint, options: ModelOptions) -> Mapping[str, object]:
    """Give the fields that change what is answered.

    The limit is max_completion_tokens for OpenAI, whose newer models refuse max_tokens, and
    max_tokens for all others, some of which know no other word.
    """
    most = options.max_output_tokens or endpoint.max_output_tokens
    if not most:
        return {}
    return {"max_completion_tokens" if endpoint.is_openai else "max_tokens": most}


def wished_fields(endpoint: ModelEndpoint, options: ModelOptions) -> Mapping[str, object]:
    """Give the fields that a server may refuse and then is asked without."""
    wished: dict[str, object] = {"stream_options": {"include_usage": True}}
    thinking = options.thinking or endpoint.thinking
    if thinking in {"on", "off"}:
        default = (
            ThinkingForm.REASONING_EFFORT if endpoint.is_openai else ThinkingForm.CHAT_TEMPLATE
        )
        wished.update(_thinking(endpoint.thinking_form or default, on=thinking == "on"))
    return wished


def _thinking(form: ThinkingForm, *, on: bool) -> Mapping[str, object]:
    forms: Mapping[ThinkingForm, Mapping[str, object]] = {
        ThinkingForm.REASONING_EFFORT: {"reasoning_effort": "medium" if on else "none"},
        ThinkingForm.CHAT_TEMPLATE: {"chat_template_kwargs": {"enable_thinking": on}},
        ThinkingForm.ENABLE_THINKING: {"enable_thinking": on},
        ThinkingForm.THINKING_TYPE: {"thinking": {"type": "enabled" if on else "disabled"}},
    }
    return forms[form]
