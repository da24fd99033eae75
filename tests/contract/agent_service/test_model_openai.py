"""How the client of a chat endpoint copes with what endpoints do."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from agent_service.adapters.model_openai import ModelEndpoint, OpenAIModel, ThinkingForm
from agent_service.adapters.model_openai.endpoint import needed_fields, wished_fields
from agent_service.domain.errors import ModelRefused, ModelUnavailable
from agent_service.domain.model import Message, Role
from agent_service.ports import (
    ModelEvent,
    ModelFinish,
    ModelOptions,
    ModelReasoning,
    ModelText,
    ModelUsage,
)
from tests.services.mariadb import free_port
from tests.services.openai_server import (
    DONE,
    HOLD,
    OpenAIServer,
    Script,
    Step,
    chunk,
    event,
    openai_server,
    refuses,
    role,
    says,
    streams,
    text,
    usage,
)

KEY = "sk-very-secret"
HELLO = [Message(Role.SYSTEM, "Be kind."), Message(Role.USER, "Hello")]


@asynccontextmanager
async def asking(
    *scripts: Script, **values: Any
) -> AsyncIterator[tuple[OpenAIModel, OpenAIServer]]:
    with openai_server(*scripts) as server:
        wanted = {"base_url": server.base_url, "api_key": KEY, "model": "m", **values}
        model = OpenAIModel(ModelEndpoint(**wanted))
        try:
            yield model, server
        finally:
            await model.close()


async def answer(
    asked: OpenAIModel, messages: Sequence[Message] = HELLO, **options: Any
) -> list[ModelEvent]:
    async with aclosing(asked.stream(messages, ModelOptions(**options))) as events:
        return [given async for given in events]


async def failed(model: OpenAIModel) -> tuple[list[ModelEvent], Exception]:
    """Give what came before the failure, and the failure."""
    given: list[ModelEvent] = []

    async def listen() -> None:
        async with aclosing(model.stream(HELLO, ModelOptions())) as events:
            async for one in events:
                given.append(one)  # noqa: PERF401 — what came before a failure is wanted

    with pytest.raises((ModelUnavailable, ModelRefused)) as caught:
        await listen()
    return given, caught.value


def words(events: Sequence[ModelEvent]) -> str:
    return "".join(one.text for one in events if isinstance(one, ModelText))


async def words_of(*steps: bytes) -> str:
    async with asking(streams(*steps)) as (model, _):
        return words(await answer(model))


# ---------------------------------------------------------------- what is asked


async def test_messages_go_out_with_their_roles_and_the_key_in_its_header() -> None:
    async with asking() as (model, server):
        await answer(model)
    [call] = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.key == f"Bearer {KEY}"
    assert call.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hello"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_without_a_key_none_is_sent_and_nothing_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of somebody else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
    async with asking(api_key="") as (model, server):
        await answer(model)
    assert not set(server.calls[0].headers) & {
        "authorization",
        "openai-organization",
        "openai-project",
    }


async def test_blank_messages_are_never_sent() -> None:
    spoken = [HELLO[1], Message(Role.ASSISTANT, ""), Message(Role.ASSISTANT, " \n"), HELLO[1]]
    async with asking() as (model, server):
        await answer(model, spoken)
    assert [sent["role"] for sent in server.calls[0].body["messages"]] == ["user", "user"]


async def test_text_arrives_at_the_model_as_it_is() -> None:
    odd = "{x} {{y}} %s $z <|endoftext|> \u2028 👩‍🚀 渐 \ud83d"
    async with asking() as (model, server):
        await answer(model, [Message(Role.USER, odd)])
    sent = server.calls[0].body["messages"][0]["content"]
    assert sent == odd.replace("\ud83d", "\ufffd")


async def test_a_request_may_name_its_own_model_and_length() -> None:
    async with asking(max_output_tokens=100) as (model, server):
        await answer(model, model="other", max_output_tokens=7)
        await answer(model)
    assert [(call.body["model"], call.body["max_tokens"]) for call in server.calls] == [
        ("other", 7),
        ("m", 100),
    ]


async def test_a_server_of_a_single_model_needs_no_name() -> None:
    async with asking(model="") as (model, server):
        await answer(model)
    assert server.calls[0].body["model"] == "default"


@pytest.mark.parametrize(
    ("form", "on", "off"),
    [
        (
            None,
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        (
            ThinkingForm.REASONING_EFFORT,
            {"reasoning_effort": "medium"},
            {"reasoning_effort": "none"},
        ),
        (ThinkingForm.ENABLE_THINKING, {"enable_thinking": True}, {"enable_thinking": False}),
        (
            ThinkingForm.THINKING_TYPE,
            {"thinking": {"type": "enabled"}},
            {"thinking": {"type": "disabled"}},
        ),
    ],
)
async def test_thinking_is_switched_in_the_words_of_the_api(
    form: ThinkingForm | None, on: dict[str, Any], off: dict[str, Any]
) -> None:
    async with asking(thinking_form=form, thinking="on") as (model, server):
        await answer(model)
        await answer(model, thinking="off")
        await answer(model, thinking="auto")
    plain = {"model", "messages", "stream", "stream_options"}
    said = [
        {name: value for name, value in call.body.items() if name not in plain}
        for call in server.calls
    ]
    assert said == [on, off, {}]


def test_openai_itself_is_asked_in_its_newer_words() -> None:
    endpoint = ModelEndpoint(model="m")
    options = ModelOptions(thinking="off", max_output_tokens=5)
    assert needed_fields(endpoint, options) == {"max_completion_tokens": 5}
    assert wished_fields(endpoint, options)["reasoning_effort"] == "none"


@pytest.mark.parametrize("values", [{"base_url": "localhost:1"}, {"api_key": "ключ"}])
def test_an_address_or_key_that_is_none_is_refused_at_once(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="the model's") as refused:
        ModelEndpoint(**values)  # type: ignore[arg-type]
    assert "ключ" not in str(refused.value)


def test_the_key_is_in_no_repr() -> None:
    assert KEY not in repr(ModelEndpoint(api_key=KEY))


# ---------------------------------------------------------------- what is answered


async def test_an_answer_comes_in_pieces_then_usage_then_its_end() -> None:
    async with asking(says("He", "llo")) as (model, _):
        given = await answer(model)
    assert given == [ModelText("He"), ModelText("llo"), ModelUsage(11, 2), ModelFinish("stop")]


async def test_one_connection_serves_all_calls() -> None:
    async with asking() as (model, server):
        for _ in range(3):
            await answer(model)
    assert server.connections == 1


async def test_an_answer_without_usage_has_none() -> None:
    async with asking(streams(text("Hi"), chunk(finish="stop"), DONE)) as (model, _):
        assert await answer(model) == [ModelText("Hi"), ModelFinish("stop")]


async def test_of_usage_told_with_every_chunk_the_last_counts() -> None:
    steps = [
        chunk({"content": piece}, usage={"prompt_tokens": 5, "completion_tokens": count})
        for count, piece in enumerate("abc", 1)
    ]
    async with asking(streams(*steps, chunk(finish="stop", usage=None), DONE)) as (model, _):
        given = await answer(model)
    assert given[-2:] == [ModelUsage(5, 3), ModelFinish("stop")]


@pytest.mark.parametrize(
    "counts",
    [{}, {"prompt_tokens": None}, {"prompt_tokens": True}, {"prompt_tokens": "7"}, [], "x"],
)
async def test_usage_that_is_none_is_left_out(counts: object) -> None:
    steps = (text("Hi"), chunk(finish="stop", usage=counts), DONE)
    async with asking(streams(*steps)) as (model, _):
        assert await answer(model) == [ModelText("Hi"), ModelFinish("stop")]


async def test_nulls_and_strange_shapes_say_nothing() -> None:
    nothing: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": None, "reasoning_content": None},
        {"content": ""},
        {"content": 7},
        {"content": [None, {"type": "image"}, {"type": "text"}]},
    ]
    steps = [
        *(chunk(delta) for delta in nothing),
        chunk({"content": None}, finish=""),
        event({"choices": [{"delta": None}]}),
        event({"choices": [None]}),
        event({"choices": None}),
        event({}),
        text("Hi"),
        chunk(finish="stop"),
    ]
    assert await words_of(*steps, DONE) == "Hi"


async def test_lines_may_end_in_any_way_and_comments_and_other_fields_are_passed_over() -> None:
    body = b"".join(
        [
            b"\xef\xbb\xbf: hello\r\n\r\n",
            b"event: message\r\nid: 1\r\nretry: 5\r\n",
            text("He").replace(b"data: ", b"data:").replace(b"\n", b"\r\n"),
            b": ping\n\n",
            text("llo").replace(b"\n", b"\r"),
            b"nonsense\n\n",
            chunk(finish="stop") + DONE,
        ]
    )
    assert await words_of(body) == "Hello"


async def test_blank_lines_may_be_missing_and_the_last_line_end_too() -> None:
    body = (text("He") + text("llo") + chunk(finish="stop") + DONE).replace(b"\n\n", b"\n")
    assert await words_of(body.rstrip()) == "Hello"


async def test_an_event_may_have_several_data_lines() -> None:
    pretty = json.dumps({"choices": [{"delta": {"content": "Hello"}}]}, indent=2)
    body = "".join(f"data: {line}\n" for line in pretty.splitlines()).encode()
    assert await words_of(body + b"\n", chunk(finish="stop"), DONE) == "Hello"


async def test_text_is_whole_though_bytes_come_one_by_one() -> None:
    body = role() + text("渐🌍\u2028\u0085|") + chunk(finish="stop") + DONE
    async with asking(streams(*(bytes([byte]) for byte in body))) as (model, _):
        given = await answer(model)
    assert given == [ModelText("渐🌍\u2028\u0085|"), ModelFinish("stop")]


async def test_a_character_cut_into_surrogates_is_put_together() -> None:
    halves = (
        rb'{"choices":[{"delta":{"content":"a\ud83c"}}]}',
        rb'{"choices":[{"delta":{"content":"\udf0d\u0000b"}}]}',
    )
    steps = [b"data: %s\n\n" % half for half in halves]
    async with asking(streams(*steps, chunk(finish="stop"), DONE)) as (model, _):
        given = await answer(model)
    assert given[:2] == [ModelText("a"), ModelText("🌍b")]


async def test_half_a_character_at_the_end_is_replaced() -> None:
    half = b'data: {"choices":[{"delta":{"content":"a\\ud83c"},"finish_reason":"length"}]}\n\n'
    assert await words_of(half, DONE) == "a\ufffd"


async def test_reasoning_stays_inside_whatever_it_is_called() -> None:
    steps = [
        chunk({"reasoning_content": "abc"}),
        chunk({"reasoning": "de", "content": None}),
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "f"}]}]}),
        chunk({"content": [{"type": "text", "text": "Hi"}]}),
        chunk(finish="stop"),
    ]
    async with asking(streams(*steps, DONE)) as (model, _):
        given = await answer(model)
    assert [one.chars for one in given if isinstance(one, ModelReasoning)] == [3, 2, 1]
    assert words(given) == "Hi"


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_thoughts_in_tags_stay_inside(size: int) -> None:
    whole = "\n<think>\nsecret <b> </thin\n</think>\n\nHi </think> there <think>"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    async with asking(says(*pieces)) as (model, _):
        given = await answer(model)
    assert words(given) == "Hi </think> there <think>"
    assert sum(one.chars for one in given if isinstance(one, ModelReasoning)) == len(
        "\nsecret <b> </thin\n"
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [("<thin", "<thin"), (" \n", " \n"), ("<think>never ending", ""), ("<i>x", "<i>x")],
)
async def test_what_only_begins_like_a_tag_is_text(said: str, shown: str) -> None:
    assert await words_of(*(text(letter) for letter in said), chunk(finish="stop"), DONE) == shown


async def test_a_refusal_of_the_model_is_its_answer() -> None:
    steps = (chunk({"refusal": "I will not."}), chunk(finish="stop"), DONE)
    assert await words_of(*steps) == "I will not."


async def test_tool_calls_are_passed_over() -> None:
    fragments = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
        {"function": {"arguments": "}"}},
    ]
    steps = [chunk({"tool_calls": [one]}) for one in fragments]
    async with asking(streams(*steps, chunk(finish="tool_calls"), DONE)) as (model, _):
        assert await answer(model) == [ModelFinish("tool_calls")]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_calls"),
        ("eos", "stop"),
    ],
)
async def test_the_end_is_told_in_four_words(said: str, meant: str) -> None:
    async with asking(says("Hi", finish=said)) as (model, _):
        assert (await answer(model))[-1] == ModelFinish(meant)


# ---------------------------------------------------------------- how answers end


async def test_an_end_without_a_finish_is_one_if_the_server_says_done() -> None:
    async with asking(streams(text("Hi"), DONE, text("after"))) as (model, _):
        assert await answer(model) == [ModelText("Hi"), ModelFinish("stop")]


@pytest.mark.parametrize("aborts", [False, True])
async def test_a_finished_answer_is_whole_though_done_never_comes(aborts: bool) -> None:  # noqa: FBT001
    steps: list[Step] = [text("Hi"), chunk(finish="stop"), usage(), 0.05]
    async with asking(Script(steps, aborts=aborts)) as (model, _):
        given = await answer(model)
    assert given == [ModelText("Hi"), ModelUsage(11, 2), ModelFinish("stop")]


@pytest.mark.parametrize("end", [[], [DONE]])
async def test_a_server_that_keeps_the_connection_open_does_not_hold_the_answer_up(
    end: list[bytes],
) -> None:
    steps: tuple[Step, ...] = (text("Hi"), chunk(finish="stop"), *end, HOLD)
    async with asking(streams(*steps), idle_timeout=0.2) as (model, server):
        assert await answer(model) == [ModelText("Hi"), ModelFinish("stop")]
        assert await asyncio.to_thread(server.calls[0].ended.wait, 60)
    assert server.calls[0].closed_early


@pytest.mark.parametrize("aborts", [False, True])
async def test_an_answer_that_breaks_off_is_no_answer(aborts: bool) -> None:  # noqa: FBT001
    script = Script([text("Hi"), 0.05], aborts=aborts)
    async with asking(script) as (model, server):
        given, failure = await failed(model)
    assert given == [ModelText("Hi")]
    assert isinstance(failure, ModelUnavailable)
    assert len(server.calls) == 1


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
async def test_some_finishes_are_failures(reason: str) -> None:
    async with asking(says("Hi", finish=reason)) as (model, _):
        given, failure = await failed(model)
    assert (words(given), str(failure)) == ("Hi", "the model's answer ended early")


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "boom at http://internal", "type": "server_error", "code": 500}},
        {"error": "boom at http://internal", "choices": []},
        {"object": "error", "message": "boom at http://internal", "code": 503},
    ],
)
async def test_an_error_in_the_middle_is_told_without_the_providers_words(error: object) -> None:
    async with asking(streams(text("Hi"), event(error))) as (model, server):
        given, failure = await failed(model)
    assert words(given) == "Hi"
    assert isinstance(failure, ModelUnavailable)
    assert "internal" not in str(failure)
    assert len(server.calls) == 1


async def test_an_error_in_the_stream_that_blames_the_request_is_a_refusal() -> None:
    error = {"error": {"message": "too long", "code": 400, "type": "context_length_exceeded"}}
    async with asking(streams(event(error))) as (model, server):
        _, failure = await failed(model)
    assert isinstance(failure, ModelRefused)
    assert "context_length_exceeded" in str(failure)
    assert len(server.calls) == 1


@pytest.mark.parametrize("garbage", [b"data: {oops\n\n", b"data: [1]\n\n", b"data: \xff\n\n"])
async def test_an_answer_that_cannot_be_read_is_said_to_be_so(garbage: bytes) -> None:
    async with asking(streams(text("Hi"), garbage)) as (model, _):
        given, failure = await failed(model)
    assert (words(given), str(failure)) == ("Hi", "the model's answer cannot be read")


async def test_a_page_that_is_no_stream_is_no_answer() -> None:
    page = Script([b"<html>Welcome</html>"], content_type="text/html")
    async with asking(page, attempts=1) as (model, _):
        _, failure = await failed(model)
    assert str(failure) == "the model's answer ended early"


# ---------------------------------------------------------------- trying again


@pytest.mark.parametrize(
    "trouble",
    [
        refuses(429),
        refuses(503, retry_after="0.1"),
        refuses(500, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
        refuses(529),
        Script(resets=True),
        Script([role()], aborts=True),
        streams(role()),
        streams(event({"error": {"message": "overloaded", "code": "server_error"}})),
    ],
)
async def test_trouble_before_the_first_token_is_tried_again(trouble: Script) -> None:
    async with asking(trouble, says("Hi")) as (model, server):
        assert words(await answer(model)) == "Hi"
    assert len(server.calls) == 2


async def test_attempts_are_bounded() -> None:
    async with asking(refuses(503), attempts=2) as (model, server):
        _, failure = await failed(model)
    assert isinstance(failure, ModelUnavailable)
    assert "503" in str(failure)
    assert len(server.calls) == 2


async def test_the_pause_that_a_server_asks_for_is_kept() -> None:
    async with asking(refuses(429, retry_after_ms="900"), says("Hi")) as (model, _):
        begin = time.monotonic()
        await answer(model)
        assert time.monotonic() - begin >= 0.9


@pytest.mark.parametrize("values", [{"longest_pause": 5.0}, {"first_timeout": 5.0}])
async def test_a_server_that_asks_for_a_long_pause_is_not_asked_again(
    values: dict[str, float],
) -> None:
    async with asking(refuses(429, retry_after="6"), **values) as (model, server):
        _, failure = await failed(model)
    assert isinstance(failure, ModelUnavailable)
    assert len(server.calls) == 1


async def test_a_server_that_is_not_there_is_told_without_its_address() -> None:
    port = free_port()
    model = OpenAIModel(ModelEndpoint(base_url=f"http://127.0.0.1:{port}/v1", attempts=2))
    _, failure = await failed(model)
    await model.close()
    assert str(failure) == "the model cannot be reached"
    assert isinstance(failure, ModelUnavailable)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_a_refusal_is_told_at_once_and_tells_no_secret(status: int) -> None:
    refusal = refuses(
        status, f"Incorrect API key provided: {KEY} at http://internal", code="bad_key"
    )
    async with asking(refusal) as (model, server):
        _, failure = await failed(model)
    assert isinstance(failure, ModelRefused)
    assert str(failure) == f"the model does not take this request (HTTP {status}, bad_key)"
    assert len(server.calls) <= 2


async def test_a_code_that_is_prose_or_holds_the_key_is_not_told() -> None:
    refusal = refuses(403, code="see http://internal")
    async with asking(refusal, api_key="request") as (model, _):
        _, failure = await failed(model)
    assert str(failure) == "the model does not take this request (HTTP 403)"


async def test_a_refusal_without_a_body_of_json_is_one_too() -> None:
    async with asking(Script([b"<html>"], status=404, content_type="text/html")) as (model, _):
        _, failure = await failed(model)
    assert str(failure) == "the model does not take this request (HTTP 404)"


@pytest.mark.parametrize("message", ["unknown field stream_options", "bad request"])
async def test_a_server_that_does_not_know_usage_is_asked_without_it_from_then_on(
    message: str,
) -> None:
    async with asking(refuses(400, message), says("Hi")) as (model, server):
        assert words(await answer(model)) == "Hi"
        await answer(model)
    assert ["stream_options" in call.body for call in server.calls] == [True, False, False]


async def test_only_the_field_that_a_server_names_is_left_out() -> None:
    refusal = refuses(422, "chat_template_kwargs: extra fields not permitted")
    async with asking(refusal, says("Hi"), thinking="on") as (model, server):
        await answer(model)
    last = server.calls[-1].body
    assert "stream_options" in last
    assert "chat_template_kwargs" not in last


async def test_a_refusal_for_another_reason_costs_no_field() -> None:
    async with asking(refuses(400), refuses(400), says("Hi")) as (model, server):
        _, failure = await failed(model)
        await answer(model)
    assert isinstance(failure, ModelRefused)
    assert "stream_options" in server.calls[-1].body


# ---------------------------------------------------------------- time


async def test_silence_before_the_answer_is_bounded() -> None:
    async with asking(Script(before_headers=120.0), first_timeout=0.2) as (model, server):
        _, failure = await failed(model)
        assert await asyncio.to_thread(server.calls[0].ended.wait, 60)
    assert (type(failure), str(failure)) == (
        ModelUnavailable,
        "the model was silent for too long",
    )
    assert server.calls[0].closed_early


async def test_roles_and_comments_are_no_first_token() -> None:
    pings = [step for _ in range(100) for step in (0.05, b": ping\n\n", chunk({"content": ""}))]
    async with asking(streams(role(), *pings), first_timeout=0.3) as (model, _):
        _, failure = await failed(model)
    assert str(failure) == "the model was silent for too long"


async def test_silence_inside_the_answer_is_bounded_and_comments_do_not_break_it() -> None:
    pings = [step for _ in range(100) for step in (0.05, b": ping\n\n")]
    async with asking(streams(text("Hi"), *pings), idle_timeout=0.3) as (model, server):
        given, failure = await failed(model)
    assert (words(given), str(failure)) == ("Hi", "the model was silent for too long")
    assert len(server.calls) == 1


async def test_a_long_answer_may_take_longer_than_any_silence() -> None:
    steps = [step for letter in "abcdef" for step in (0.15, text(letter))]
    script = streams(*steps, chunk(finish="stop"), DONE)
    async with asking(script, first_timeout=5.0, idle_timeout=0.6) as (model, _):
        assert words(await answer(model)) == "abcdef"


async def test_a_slow_reader_is_no_silence_of_the_model() -> None:
    async with asking(says("a", "b", "c"), idle_timeout=0.2) as (model, _):
        heard = ""
        async with aclosing(model.stream(HELLO, ModelOptions())) as events:
            async for one in events:
                heard += one.text if isinstance(one, ModelText) else ""
                await asyncio.sleep(0.3)
    assert heard == "abc"


# ---------------------------------------------------------------- closing


async def test_closing_the_generator_closes_the_call() -> None:
    async with asking(streams(text("a"), text("b"), HOLD)) as (model, server):
        events = model.stream(HELLO, ModelOptions())
        assert await anext(events) == ModelText("a")
        await events.aclose()
        assert await asyncio.to_thread(server.calls[0].ended.wait, 60)
    assert server.calls[0].closed_early


@pytest.mark.parametrize("script", [streams(HOLD), Script(before_headers=120.0)])
async def test_cancelling_the_reader_closes_the_call(script: Script) -> None:
    async with asking(script) as (model, server):
        reader = asyncio.create_task(answer(model))
        assert await asyncio.to_thread(server.asked.wait, 30)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert await asyncio.to_thread(server.calls[0].ended.wait, 60)
    assert server.calls[0].closed_early
