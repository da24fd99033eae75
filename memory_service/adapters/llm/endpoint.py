"""Where a model is, and how to ask it: what servers differ in is learnt from their refusals."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

OPENAI = "https://api.openai.com/v1"
ANY_MODEL = "default"
"""Asked for where no model is named; servers of a single model do not look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """What to ask, and for how long; durations are seconds. Raises ValueError.

    base_url ends before `/chat/completions`; empty: OpenAI's own. An empty api_key sends none.
    """

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""
    max_output_tokens: int = 4096
    """Thoughts included. 0: as the model likes."""
    connect_timeout: float = 5.0
    timeout: float = 60.0
    """From the request to the end of the answer."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What an answer looks like: a name, and a JSON schema of it."""

    name: str
    body: Mapping[str, object]


def strict_object(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Give the schema of an object that has all of these and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_FORMATS = ("json_schema", "json_object", "")
"""From the strictest; every prompt asks for JSON in words as well."""


@dataclass(frozen=True, slots=True)
class RequestForm:
    """What of the API a server is thought to know."""

    response_format: str = _FORMATS[0]
    limit: str = "max_tokens"
    """Newer models of OpenAI know max_completion_tokens only, many servers the other one only."""
    cold: bool = True
    """Send temperature 0, which models that think may refuse."""

    def fields(self, endpoint: ModelEndpoint, schema: Schema) -> dict[str, object]:
        """Give the fields of a request that a server may not know."""
        fields: dict[str, object] = {}
        if self.response_format:
            fields["response_format"] = {"type": self.response_format}
        if self.response_format == _FORMATS[0]:
            asked = {"name": schema.name, "strict": True, "schema": schema.body}
            fields["response_format"] = {"type": self.response_format, "json_schema": asked}
        if endpoint.max_output_tokens:
            fields[self.limit] = endpoint.max_output_tokens
        if self.cold:
            fields["temperature"] = 0
        return fields

    def without(self, complaint: str) -> "RequestForm | None":
        """Give the next form to try after a refusal that names a field; None if it names none."""
        if self.response_format and any(
            word in complaint for word in ("response_format", *_FORMATS[:2])
        ):
            weaker = _FORMATS[_FORMATS.index(self.response_format) + 1]
            return replace(self, response_format=weaker)
        if self.limit == "max_tokens" and "max_completion_tokens" in complaint:
            return replace(self, limit="max_completion_tokens")
        if self.cold and "temperature" in complaint:
            return replace(self, cold=False)
        return None
