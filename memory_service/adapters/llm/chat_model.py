"""One question to a chat model and its whole answer, over the official client."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
import structlog

from memory_service.adapters.breaker import Breaker
from memory_service.adapters.llm import failures
from memory_service.adapters.llm.endpoint import ANY_MODEL, ModelEndpoint, RequestForm, Schema
from memory_service.domain.errors import ModelUnavailable, ModelUnreadable

_UNKNOWN_FIELD = frozenset({400, 422})
"""What a server answers that does not know a field."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What to ask: instructions of ours, and data of others that is not to be obeyed."""

    instructions: str
    data: str
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said; cut: it was stopped at the limit of tokens."""

    text: str
    cut: bool


class ChatModel:
    """One client for all calls, call close at the end.

    Asks once: who wants an answer asks again later. Only a field that the server refuses is left
    out at once, and from then on. After some outages in a row calls fail at once until a trial
    succeeds. Neither key nor text of a prompt or an answer is in errors or logs.
    """

    def __init__(self, endpoint: ModelEndpoint, *, breaker: Breaker | None = None) -> None:
        self.name = endpoint.model or ANY_MODEL
        self._endpoint = endpoint
        self._breaker = breaker or Breaker()
        self._form = RequestForm()
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url,
            api_key=endpoint.api_key or "none",
            max_retries=0,
            timeout=openai.Timeout(None, connect=endpoint.connect_timeout),
        )
        # not from the environment: only settings reads that
        self._client.organization = self._client.project = None

    async def ask(self, prompt: Prompt) -> Answer:
        """Give the answer, which is not blank. Raises ModelUnavailable, ModelUnreadable."""
        if not self._breaker.admit():
            raise ModelUnavailable(failures.BREAKER_OPEN)
        try:
            async with asyncio.timeout(self._endpoint.timeout):
                answer = await self._ask(prompt)
        except TimeoutError:
            raise self._away(ModelUnavailable(failures.SILENT)) from None
        except ModelUnavailable as away:
            raise self._away(away) from None
        except ModelUnreadable as refusal:
            self._breaker.success()
            _log.warning("model_unreadable", cause=str(refusal), model=self.name)
            raise
        self._breaker.success()
        return answer

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    def _away(self, away: ModelUnavailable) -> ModelUnavailable:
        self._breaker.failure()
        _log.warning("model_away", cause=str(away), model=self.name)
        return away

    async def _ask(self, prompt: Prompt) -> Answer:
        """Ask in the form that the server takes; what it was is remembered."""
        form = self._form
        while True:
            try:
                response = await self._post(prompt, form)
            except openai.APIStatusError as error:
                named = error.status_code in _UNKNOWN_FIELD and form.without(error.response.text)
                if not named:
                    key = self._endpoint.api_key
                    raise failures.failure_of(error.status_code, error.body, key=key) from None
                form = named
            except (openai.APIError, httpx2.HTTPError, OSError):
                raise ModelUnavailable(failures.UNREACHED) from None
            else:
                self._form = form
                return self._read(response)

    async def _post(self, prompt: Prompt, form: RequestForm) -> str:
        """Give the body of the response as it came."""
        response = await self._client.chat.completions.with_raw_response.create(
            model=self.name,
            messages=[
                {"role": "system", "content": prompt.instructions},
                {"role": "user", "content": prompt.data},
            ],
            extra_body=form.fields(self._endpoint, prompt.schema),
            extra_headers={} if self._endpoint.api_key else {"Authorization": openai.Omit()},
        )
        return response.http_response.text

    def _read(self, body: str) -> Answer:
        """Find what the model said; fields that are null, absent or of another shape say nothing.

        Raises ModelUnavailable for what no model server would say, such as the page of a proxy.
        """
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise ModelUnavailable(failures.GARBLED) from None
        if not isinstance(answer, Mapping):
            raise ModelUnavailable(failures.GARBLED)
        if error := answer.get("error"):
            raise failures.failure_of(_status(error), error, key=self._endpoint.api_key)
        choice = _first(answer.get("choices"))
        message = _mapping(choice.get("message"))
        finish = _text(choice.get("finish_reason"))
        text = _text(message.get("content"))
        if finish in {"content_filter", "safety"}:
            raise ModelUnreadable(failures.FILTERED)
        if _text(message.get("refusal")).strip():
            raise ModelUnreadable(failures.REFUSED)
        cut = finish in {"length", "max_tokens"}
        if not text.strip():
            raise ModelUnreadable(failures.CUT_OFF if cut else failures.EMPTY)
        return Answer(text=text, cut=cut)


def _status(error: Any) -> int:
    """Give the status that an error inside of an answer names; without one it is an outage."""
    code = _mapping(error).get("code")
    return code if isinstance(code, int) else 500


def _text(content: Any) -> str:
    """Give the words of a content: a text, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    parts = [_mapping(part) for part in content] if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _first(choices: Any) -> Mapping[str, Any]:
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
