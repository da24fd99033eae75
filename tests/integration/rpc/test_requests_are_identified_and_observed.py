import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import REGISTRY
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from rpc.channel import open_channel
from rpc.deadline import remaining
from rpc.errors import read_failure
from rpc.request import request_id, set_request_id
from rpc.server import ServerSettings
from tests.integration.rpc.echo import NAME, Client, Echo, Text, client, serving

TOKEN = "correct horse"
GUARDED = ServerSettings(listen="127.0.0.1:0", service_token=TOKEN)


async def _tell_id(_request: Any, _context: Any) -> Text:
    assert get_contextvars()["request_id"] == request_id()
    return Text(value=request_id())


async def _tell_id_streaming(_request: Any, _context: Any) -> AsyncIterator[Text]:
    yield Text(value=request_id())


TELLS = Echo(Say=_tell_id, Stream=_tell_id_streaming)


async def _trailing(call: Any) -> str:
    return str(dict(await call.trailing_metadata())["x-request-id"])


async def test_the_callers_request_id_is_kept_and_given_back() -> None:
    async with serving(TELLS) as server, client(server) as c:
        call = c.say(Text(), metadata=(("x-request-id", "abc 123"),))
        assert (await call).value == "abc 123"
        assert await _trailing(call) == "abc 123"
        stream = c.stream(Text(), metadata=(("x-request-id", "abc 124"),))
        assert [answer.value async for answer in stream] == ["abc 124"]
        assert await _trailing(stream) == "abc 124"


@pytest.mark.parametrize("sent", ["", "x" * 129])
async def test_a_request_id_that_is_none_is_replaced(sent: str) -> None:
    async with serving(TELLS) as server, client(server) as c:
        call = c.say(Text(), metadata=(("x-request-id", sent),))
        got = (await call).value
        assert len(got) == 36
        assert await _trailing(call) == got


async def test_a_failed_call_gives_its_request_id_back_too() -> None:
    async with serving(settings=GUARDED) as server, client(server) as c:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await c.say(Text(), metadata=(("x-request-id", "mine"),))
        assert dict(raised.value.trailing_metadata())["x-request-id"] == "mine"


async def test_a_request_id_travels_on_with_the_calls_made_for_it() -> None:
    async with serving(TELLS) as inner, client(inner) as onward:

        async def ask(request: Text, _context: Any) -> Text:
            answer: Text = await onward.say(request)
            return answer

        async with serving(Echo(Say=ask)) as outer, client(outer) as c:
            assert (await c.say(Text(), metadata=(("x-request-id", "far"),))).value == "far"
            assert request_id() == ""


async def test_an_id_set_for_work_of_our_own_is_sent() -> None:
    async with serving(TELLS) as server, client(server) as c:
        set_request_id("relay-7")
        assert (await c.say(Text())).value == "relay-7"


async def test_calls_with_the_token_pass_whatever_their_kind() -> None:
    words = [Text(value="a"), Text(value="b")]
    async with (
        serving(settings=GUARDED) as server,
        client(server, service_token=TOKEN) as c,
    ):
        assert (await c.say(words[0])).value == "a"
        assert [a.value async for a in c.stream(Text(value="a b"))] == ["a", "b"]
        assert (await c.collect(iter(words))).value == "a b"
        assert [a.value async for a in c.talk(iter(words))] == ["a", "b"]


@pytest.mark.parametrize(
    ("sent", "reason"), [("", "NO_SERVICE_TOKEN"), ("wrong", "BAD_SERVICE_TOKEN")]
)
async def test_a_call_without_the_right_token_is_refused(sent: str, reason: str) -> None:
    async with serving(settings=GUARDED) as server, client(server, service_token=sent) as c:
        for call in (c.say(Text()), c.raw_say(b"\xff"), c.collect(iter([Text()]))):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call
            got = read_failure(raised.value)
            assert (got.code, got.reason) == (grpc.StatusCode.UNAUTHENTICATED, reason)
            assert TOKEN not in str(vars(got))


async def test_health_needs_no_token_and_reflection_does() -> None:
    async with serving(settings=GUARDED) as server:
        async with open_channel(server.address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(health_pb2.HealthCheckRequest())
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await _services(channel)
            assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
        async with open_channel(server.address, service_token=TOKEN) as channel:
            assert NAME in await _services(channel)


async def _services(channel: grpc.aio.Channel) -> list[str]:
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    make: Any = reflection_pb2_grpc.ServerReflectionStub
    stub = make(channel)
    return [
        service.name
        async for answer in stub.ServerReflectionInfo(iter([asked]))
        for service in answer.list_services_response.service
    ]


async def test_each_call_is_one_line_without_its_body() -> None:
    with capture_logs() as lines:
        async with serving() as server, client(server) as c:
            await c.say(Text(value="a secret"))
            async for _ in c.stream(Text(value="a secret")):
                pass
    calls = [line for line in lines if line["event"] == "rpc"]
    assert [(line["rpc"], line["code"]) for line in calls] == [
        (f"/{NAME}/Say", "OK"),
        (f"/{NAME}/Stream", "OK"),
    ]
    assert all(line["elapsed_ms"] >= 0 and "127.0.0.1" in line["peer"] for line in calls)
    assert "secret" not in str(lines)


def _value(name: str, method: str, **labels: str) -> float:
    kinds = {"Say": "unary_unary", "Stream": "unary_stream"}
    found = {"grpc_type": kinds[method], "grpc_service": NAME, "grpc_method": method}
    return REGISTRY.get_sample_value(name, {**found, **labels}) or 0.0


async def test_calls_are_counted_by_code_and_while_they_run() -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def say(request: Text, _context: Any) -> Text:
        entered.set()
        await go_on.wait()
        return request

    names = ("grpc_server_started_total", "grpc_server_handling_seconds_count")
    before = [_value(name, "Say") for name in names]
    ok = _value("grpc_server_handled_total", "Say", grpc_code="OK")
    bad = _value("grpc_server_handled_total", "Say", grpc_code="INVALID_ARGUMENT")
    async with serving(Echo(Say=say)) as server, client(server) as c:
        call = c.say(Text())
        await entered.wait()
        assert _value("grpc_server_in_flight", "Say") == 1
        go_on.set()
        await call
        with pytest.raises(grpc.aio.AioRpcError):
            await c.raw_say(b"\xff")
    assert [_value(name, "Say") for name in names] == [count + 2 for count in before]
    assert _value("grpc_server_handled_total", "Say", grpc_code="OK") == ok + 1
    assert _value("grpc_server_handled_total", "Say", grpc_code="INVALID_ARGUMENT") == bad + 1
    assert _value("grpc_server_in_flight", "Say") == 0


class _Watched:
    """A handler that never ends by itself and says when it was entered and left."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.left = asyncio.Event()

    async def say(self, _request: Any, _context: Any) -> Text:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        return Text()

    async def silent(self, request: Any, context: Any) -> AsyncIterator[Text]:
        yield Text(value="first")
        await self.say(request, context)

    async def endless(self, _request: Any, _context: Any) -> AsyncIterator[Text]:
        self.entered.set()
        try:
            while True:
                yield Text(value="x" * 100_000)
        finally:
            self.left.set()


async def _lines_with(kind: str, **options: Any) -> list[Any]:
    watched = _Watched()
    echo = Echo(Say=watched.say, Stream=watched.silent, Talk=watched.endless)
    with capture_logs() as lines:
        async with serving(echo) as server, client(server) as c:
            call = getattr(c, kind)(Text() if kind != "talk" else iter([Text()]), **options)
            await watched.entered.wait()
            if not options:
                call.cancel()
            async with asyncio.timeout(5):
                await watched.left.wait()
            await asyncio.sleep(0.05)
    return [line for line in lines if line["event"].startswith("rpc")]


@pytest.mark.parametrize("kind", ["say", "stream", "talk"])
async def test_a_client_that_leaves_cancels_the_handler(kind: str) -> None:
    assert [line["code"] for line in await _lines_with(kind)] == ["CANCELLED"]


async def test_an_error_after_the_client_left_is_not_a_failure_of_ours() -> None:
    entered, left = asyncio.Event(), asyncio.Event()

    async def say(_request: Any, _context: Any) -> Text:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            left.set()
            message = "nobody reads this"
            raise OSError(message) from None
        return Text()

    with capture_logs() as lines:
        async with serving(Echo(Say=say)) as server, client(server) as c:
            call = c.say(Text())
            await entered.wait()
            call.cancel()
            await left.wait()
            await asyncio.sleep(0.05)
    ended = [(line["event"], line["log_level"]) for line in lines if "rpc" in line]
    assert ended == [("rpc_left", "info"), ("rpc", "info")]


async def test_a_deadline_that_passes_cancels_the_handler() -> None:
    lines = await _lines_with("say", timeout=0.2)
    assert [line["code"] for line in lines] == ["DEADLINE_EXCEEDED"]


async def test_what_is_left_of_the_deadline_is_known_and_bounded() -> None:
    async def say(_request: Any, context: Any) -> Text:
        return Text(value=str(remaining(context, 10.0)))

    async with serving(Echo(Say=say)) as server, client(server) as c:
        assert 0 < float((await c.say(Text(), timeout=5)).value) <= 5
        assert float((await c.say(Text(), timeout=60)).value) == 10
        assert float((await c.say(Text())).value) == 10


async def test_a_call_is_tried_again_only_if_the_server_was_unavailable() -> None:
    tries: list[str] = []

    async def say(request: Text, context: Any) -> Text:
        tries.append(request.value)
        if len(tries) < 3:
            await context.abort(grpc.StatusCode[request.value], "later")
        return request

    async with serving(Echo(Say=say)) as server, client(server) as c:
        assert (await c.say(Text(value="UNAVAILABLE"))).value == "UNAVAILABLE"
        assert len(tries) == 3
        tries.clear()
        with pytest.raises(grpc.aio.AioRpcError):
            await c.say(Text(value="ABORTED"))
        assert len(tries) == 1


async def test_a_channel_does_what_a_channel_does() -> None:
    async with serving() as server:
        channel = open_channel(server.address)
        await channel.channel_ready()
        assert channel.get_state() is grpc.ChannelConnectivity.READY
        assert (await Client(channel).say(Text(value="x"))).value == "x"
        waiting = asyncio.create_task(channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
        await server.stop(0)
        await waiting
        await channel.close()


async def test_a_server_that_comes_back_is_found_again() -> None:
    async with serving() as server:
        settings = ServerSettings(listen=server.address)
        async with client(server) as c:
            await c.say(Text())
            await server.stop(0)
            async with serving(settings=settings):
                answer = await c.say(Text(value="again"), timeout=10, wait_for_ready=True)
                assert answer.value == "again"
