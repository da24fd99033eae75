"""ports.Model over the official client."""

import asyncio
import random
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import cast

import anyio
import httpx2
import openai
import structlog
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from agent_service.adapters.model_openai.answer import Answer
from agent_service.adapters.model_openai.endpoint import (
    ANY_MODEL,
    ModelEndpoint,
    model_messages,
    needed_fields,
    wished_fields,
)
from agent_service.adapters.model_openai.failures import (
    SILENT,
    UNREACHED,
    BrokenOff,
    failure_of,
)
from agent_service.adapters.model_openai.sse import EventData
from agent_service.domain.errors import ModelRefused, ModelUnavailable
from agent_service.domain.model import Message
from agent_service.ports import ModelEvent, ModelOptions

log = structlog.get_logger("agent")
UNKNOWN_FIELD = frozenset({400, 422})
"""What a server answers that does not know a field."""
PAUSE = 0.5
"""Before the second attempt, in seconds; doubled for each further one."""
USAGE_WAIT = 5.0
"""Longest wait for the usage after the answer has finished."""
DRAIN_WAIT = 0.1
"""Longest wait for the end of the response after [DONE], so that its connection can be used again.
"""
_LOST = (httpx2.HTTPError, ssl.SSLError, anyio.EndOfStream)
"""What a broken connection raises while it is read; the client itself names the same."""

_Stream = openai.AsyncStream[ChatCompletionChunk]


class OpenAIModel:
    """Implements ports.Model; one client for all calls, call close at the end.

    Tries again only before the first token, a bounded number of times within first_timeout.
    """

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self._endpoint = endpoint
        self._unwanted: frozenset[str] = frozenset()
        """Fields that the server is known to refuse."""
        # no limit of its own but for connecting: the waits are bounded here
        waits = openai.Timeout(None, connect=endpoint.connect_timeout)
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url, api_key=endpoint.api_key or "none", max_retries=0, timeout=waits
        )
        # not from the environment: only settings reads that
        self._client.organization = self._client.project = None

    async def stream(
        self, messages: Sequence[Message], options: ModelOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        """Keep the promise of Model.stream; the finish is held until usage has come."""
        deadline = _now() + self._endpoint.first_timeout
        attempt = 1
        while True:
            answer = Answer(self._endpoint.api_key)
            try:
                async with aclosing(self._attempt(messages, options, answer, deadline)) as events:
                    async for event in events:
                        yield event
            except BrokenOff as broken:
                if answer.begun or attempt == self._endpoint.attempts:
                    raise ModelUnavailable(broken.text) from broken
                await self._pause(broken, attempt, deadline)
                attempt += 1
            else:
                return

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    async def _pause(self, broken: BrokenOff, attempt: int, deadline: float) -> None:
        """Wait before the next attempt, at least as long as the server asks, or give up now."""
        own = PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311 — jitter
        pause = max(own, broken.pause)
        if pause > min(self._endpoint.longest_pause, deadline - _now()):
            raise ModelUnavailable(broken.text) from broken
        log.warning("model_retried", attempt=attempt, cause=broken.text)
        await asyncio.sleep(pause)

    async def _attempt(
        self,
        messages: Sequence[Message],
        options: ModelOptions,
        answer: Answer,
        first_deadline: float,
    ) -> AsyncGenerator[ModelEvent, None]:
        try:
            async with asyncio.timeout_at(first_deadline):
                response = await self._open(messages, options)
        except TimeoutError:
            raise ModelUnavailable(SILENT) from None
        try:
            async with aclosing(_event_data(response)) as events:
                while (data := await self._next(events, answer, first_deadline)) is not None:
                    for event in answer.take(data):
                        yield event
            for event in answer.end():
                yield event
        finally:
            await response.close()

    async def _open(self, messages: Sequence[Message], options: ModelOptions) -> _Stream:
        """Ask; a server that refuses a field that it need not know is asked without it."""
        wished = wished_fields(self._endpoint, options)
        fields = {name: wished[name] for name in wished if name not in self._unwanted}
        needed = needed_fields(self._endpoint, options)
        try:
            try:
                return await self._post(messages, options, {**needed, **fields})
            except openai.APIStatusError as error:
                if error.status_code not in UNKNOWN_FIELD or not fields:
                    raise
                named = {name for name in fields if name in error.response.text}
                unwanted = named or set(fields)
                kept = {name: fields[name] for name in fields if name not in unwanted}
            response = await self._post(messages, options, {**needed, **kept})
        except openai.APIStatusError as error:
            failure = failure_of(error, key=self._endpoint.api_key)
            if isinstance(failure, ModelRefused):
                log.warning("model_refused", status=error.status_code)
            raise failure from error
        except openai.APIConnectionError as error:
            raise BrokenOff(UNREACHED) from error
        self._unwanted |= unwanted
        return response

    async def _post(
        self, messages: Sequence[Message], options: ModelOptions, fields: dict[str, object]
    ) -> _Stream:
        return await self._client.chat.completions.create(
            model=options.model or self._endpoint.model or ANY_MODEL,
            messages=cast("list[ChatCompletionMessageParam]", model_messages(messages)),
            stream=True,
            extra_body=fields,
            extra_headers={} if self._endpoint.api_key else {"Authorization": openai.Omit()},
        )

    async def _next(
        self, events: AsyncIterator[str], answer: Answer, first_deadline: float
    ) -> str | None:
        """Give the next data, None at the end. What fails after the answer is complete is no loss.

        Time in which the reader of the answer is busy does not count.
        """
        try:
            async with asyncio.timeout_at(self._deadline(answer, first_deadline)):
                return await anext(events, None)
        except TimeoutError:
            if not answer.complete:
                raise ModelUnavailable(SILENT) from None
        except _LOST as lost:
            if not answer.complete:
                raise BrokenOff(UNREACHED) from lost
        return None

    def _deadline(self, answer: Answer, first_deadline: float) -> float:
        if answer.done:
            return _now() + DRAIN_WAIT
        if answer.finish:
            return _now() + min(USAGE_WAIT, self._endpoint.idle_timeout)
        return _now() + self._endpoint.idle_timeout if answer.begun else first_deadline


async def _event_data(response: _Stream) -> AsyncGenerator[str, None]:
    """Read the response ourselves: the client does not tell whether [DONE] came."""
    decoder = EventData()
    async for piece in response.response.aiter_bytes():
        for data in decoder.feed(piece):
            yield data
    for data in decoder.end():
        yield data


def _now() -> float:
    return asyncio.get_running_loop().time()
