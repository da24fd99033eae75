"""How the client of a chat model copes with what servers do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from memory_service.adapters.breaker import Breaker
from memory_service.adapters.llm import ChatModel, ModelEndpoint
from memory_service.adapters.llm.chat_model import Answer, Prompt
from memory_service.adapters.llm.endpoint import OPENAI, Schema
from memory_service.domain.errors import DomainError, ModelUnavailable, ModelUnreadable
from tests.services.openai_server import (
    HOLD,
    OpenAIServer,
    Script,
    answers,
    answers_body,
    openai_server,
    refuses,
)

KEY = "sk-verysecretkey"
WORDS = "my secret sorrow"
PROMPT = Prompt(
    instructions="Read this.",
    data=WORDS,
    schema=Schema(name="an_answer", body={"type": "object"}),
)
FINE = answers("fine")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server(FINE) as running:
        yield running


@asynccontextmanager
async def asking(
    server: OpenAIServer, *, breaker: Breaker | None = None, **values: object
) -> AsyncIterator[ChatModel]:
    wanted = {"base_url": server.base_url, "api_key": KEY, "model": "m", "timeout": 20.0}
    endpoint = ModelEndpoint(**{**wanted, **values})  # type: ignore[arg-type]
    model = ChatModel(endpoint, breaker=breaker)
    try:
        yield model
    finally:
        await model.close()


async def failure(server: OpenAIServer, **values: object) -> DomainError:
    """Ask, and give what is raised."""
    async with asking(server, **values) as model:  # type: ignore[arg-type]
        with pytest.raises((ModelUnavailable, ModelUnreadable)) as raised:
            await model.ask(PROMPT)
    return raised.value


async def test_instructions_and_data_go_apart_in_one_request(server: OpenAIServer) -> None:
    async with asking(server, max_output_tokens=300) as model:
        assert await model.ask(PROMPT) == Answer(text="fine", cut=False)
        assert model.name == "m"
    [call] = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.key == f"Bearer {KEY}"
    assert call.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Read this."},
            {"role": "user", "content": WORDS},
        ],
        "max_tokens": 300,
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "an_answer", "strict": True, "schema": {"type": "object"}},
        },
    }


async def test_without_key_model_and_limit_none_is_sent(server: OpenAIServer) -> None:
    async with asking(server, api_key="", model="", max_output_tokens=0) as model:
        await model.ask(PROMPT)
    assert server.calls[0].key is None
    assert server.calls[0].body["model"] == "default"
    assert "max_tokens" not in server.calls[0].body


async def test_one_connection_serves_all_calls(server: OpenAIServer) -> None:
    async with asking(server) as model:
        for _ in range(3):
            await model.ask(PROMPT)
    assert (len(server.calls), server.connections) == (3, 1)


@pytest.mark.parametrize("status", [401, 402, 404, 408, 409, 425, 429, 500, 502, 503, 529])
async def test_a_server_that_is_away_is_nobodys_fault(server: OpenAIServer, status: int) -> None:
    server.scripts = [refuses(status, retry_after="1")]
    error = await failure(server)
    assert isinstance(error, ModelUnavailable)
    assert f"HTTP {status}" in str(error)
    assert len(server.calls) == 1  # the queue asks again, not we


@pytest.mark.parametrize("status", [400, 403, 413, 422, 451])
async def test_a_refusal_is_of_this_turn(server: OpenAIServer, status: int) -> None:
    server.scripts = [refuses(status, code="context_length_exceeded")]
    error = await failure(server)
    assert isinstance(error, ModelUnreadable)
    assert f"HTTP {status}, context_length_exceeded" in str(error)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "script",
    [
        Script(resets=True),
        Script([b'{"choices": ['], content_type="application/json", aborts=True),
        answers_body(b"<html>Bad gateway</html>"),
        answers_body(b""),
        answers_body(b"[" * 100_000),
        answers_body(b'"fine"'),
        answers_body({"error": {"message": "overloaded"}}),
        answers_body({"error": {"message": "slow down", "code": 429}}),
        answers_body({"error": "overloaded"}),
    ],
)
async def test_what_is_no_answer_of_a_model_is_an_outage(
    server: OpenAIServer, script: Script
) -> None:
    server.scripts = [script]
    assert isinstance(await failure(server), ModelUnavailable)


async def test_nobody_at_the_address_is_an_outage(server: OpenAIServer) -> None:
    error = await failure(server, base_url="http://127.0.0.1:9/v1")
    assert isinstance(error, ModelUnavailable)


@pytest.mark.parametrize(
    "script",
    [
        answers(""),
        answers(" \n"),
        answers(None),
        answers(5),
        answers("", finish="length"),
        answers(None, refusal="I cannot help with that."),
        answers("half of", finish="content_filter"),
        answers_body({"choices": []}),
        answers_body({"choices": None}),
        answers_body({"choices": ["fine"]}),
        answers_body({"choices": [{"message": "fine", "finish_reason": {}}]}),
        answers_body({"choices": [], "usage": {"prompt_tokens": 5}}),
        answers_body({"error": {"message": "too long", "code": 400}}),
        answers(["fine", {"type": "text"}, {"type": "thinking", "text": "hm"}]),
    ],
)
async def test_an_answer_that_says_nothing_is_unreadable(
    server: OpenAIServer, script: Script
) -> None:
    server.scripts = [script]
    assert isinstance(await failure(server), ModelUnreadable)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            answers("fine", finish=None, refusal=None, tool_calls=None),
            Answer(text="fine", cut=False),
        ),
        (answers("half", finish="length"), Answer(text="half", cut=True)),
        (
            answers([{"type": "text", "text": "fi"}, {"type": "text", "text": "ne"}]),
            Answer(text="fine", cut=False),
        ),
        (answers("fine", reasoning_content="hm"), Answer(text="fine", cut=False)),
    ],
)
async def test_the_words_are_found_in_whatever_shape(
    server: OpenAIServer, script: Script, expected: Answer
) -> None:
    server.scripts = [script]
    async with asking(server) as model:
        assert await model.ask(PROMPT) == expected


async def test_a_silent_server_is_given_up_and_its_call_closed(server: OpenAIServer) -> None:
    server.scripts = [Script([b" ", HOLD])]
    error = await failure(server, timeout=0.3)
    assert isinstance(error, ModelUnavailable)
    assert "silent" in str(error)
    assert await asyncio.to_thread(server.calls[0].ended.wait, 20)
    assert server.calls[0].closed_early


async def test_a_caller_that_leaves_closes_the_call(server: OpenAIServer) -> None:
    server.scripts = [Script([b" ", HOLD])]
    async with asking(server) as model:
        asked = asyncio.create_task(model.ask(PROMPT))
        assert await asyncio.to_thread(server.asked.wait, 20)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await asyncio.to_thread(server.calls[0].ended.wait, 20)
    assert server.calls[0].closed_early


async def test_after_outages_nobody_is_asked_until_a_trial_succeeds(server: OpenAIServer) -> None:
    now = 0.0
    breaker = Breaker(threshold=2, cool_down=5.0, monotonic=lambda: now)
    server.scripts = [refuses(503), refuses(503), FINE]
    async with asking(server, breaker=breaker) as model:
        for asked in (1, 2, 2):
            with pytest.raises(ModelUnavailable):
                await model.ask(PROMPT)
            assert len(server.calls) == asked
        now = 6.0
        assert (await model.ask(PROMPT)).text == "fine"
    assert breaker.closed


async def test_refusals_keep_nobody_from_asking(server: OpenAIServer) -> None:
    server.scripts = [refuses(400)] * 3 + [answers("")] * 3 + [FINE]
    async with asking(server, breaker=Breaker(threshold=2)) as model:
        for _ in range(6):
            with pytest.raises(ModelUnreadable):
                await model.ask(PROMPT)
        assert (await model.ask(PROMPT)).text == "fine"


def formats(server: OpenAIServer) -> list[str | None]:
    return [call.body.get("response_format", {}).get("type") for call in server.calls]


async def test_a_server_without_schemas_is_asked_for_json_and_then_for_nothing(
    server: OpenAIServer,
) -> None:
    server.scripts = [
        refuses(400, "This response_format type is unavailable now"),
        refuses(422, "response_format.type: json_object is not supported"),
        FINE,
    ]
    async with asking(server) as model:
        await model.ask(PROMPT)
        await model.ask(PROMPT)
    assert formats(server) == ["json_schema", "json_object", None, None]


async def test_what_a_server_takes_is_remembered_only_once_it_took_it(
    server: OpenAIServer,
) -> None:
    server.scripts = [refuses(400, "response_format"), refuses(503), FINE]
    async with asking(server) as model:
        with pytest.raises(ModelUnavailable):
            await model.ask(PROMPT)
        await model.ask(PROMPT)
    assert formats(server) == ["json_schema", "json_object", "json_schema"]


async def test_a_refusal_that_names_no_field_is_asked_no_second_time(
    server: OpenAIServer,
) -> None:
    server.scripts = [refuses(400, "too long")]
    await failure(server)
    assert len(server.calls) == 1


async def test_a_refusal_that_names_every_field_for_ever_ends(server: OpenAIServer) -> None:
    server.scripts = [refuses(400, "response_format max_completion_tokens temperature")]
    assert isinstance(await failure(server), ModelUnreadable)
    assert len(server.calls) == 5


async def test_models_that_think_are_asked_in_their_words(server: OpenAIServer) -> None:
    server.scripts = [
        refuses(400, "Use 'max_completion_tokens' instead."),
        refuses(400, "'temperature' does not support 0 with this model."),
        FINE,
    ]
    async with asking(server, max_output_tokens=300) as model:
        await model.ask(PROMPT)
    last = server.calls[-1].body
    assert last["max_completion_tokens"] == 300
    assert not {"max_tokens", "temperature"} & last.keys()
    assert formats(server)[-1] == "json_schema"


@pytest.mark.parametrize(
    "script",
    [
        refuses(401, f"Incorrect API key: {KEY}. You sent: {WORDS}", code=KEY),
        refuses(400, f"Cannot read: {WORDS} {KEY}", code=f"invalid {WORDS}"),
        answers_body({"error": {"code": KEY, "type": KEY, "message": WORDS}}),
        answers(f"{WORDS} {KEY}", finish="content_filter"),
        answers_body(f"{WORDS} {KEY}".encode()),
        Script(resets=True),
    ],
)
async def test_neither_keys_nor_words_are_in_errors_or_logs(
    server: OpenAIServer, script: Script
) -> None:
    server.scripts = [script]
    with capture_logs() as logs:
        error = await failure(server)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    for shown in (str(error), repr(error), str(logs)):
        assert KEY not in shown
        assert WORDS not in shown
    assert logs[0]["event"] in {"model_away", "model_unreadable"}


def test_the_key_is_not_shown() -> None:
    assert KEY not in repr(ModelEndpoint(api_key=KEY))


def test_an_endpoint_that_cannot_be_is_refused() -> None:
    assert ModelEndpoint().url == OPENAI
    with pytest.raises(ValueError, match="http://"):
        ModelEndpoint(base_url="127.0.0.1:80")
    with pytest.raises(ValueError, match="header"):
        ModelEndpoint(api_key="ключ")
