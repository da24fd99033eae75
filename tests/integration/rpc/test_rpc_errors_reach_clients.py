import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from rpc.errors import Failure, Violation, read_failure
from rpc.server import start
from tests.integration.rpc.echo import (
    LOOPBACK,
    NAME,
    Client,
    Echo,
    Odd,
    Text,
    always,
    client,
    service,
    serving,
)

SECRET = "SELECT secret FROM memories"


async def _failure(call: Any) -> Failure:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await asyncio.wait_for(_ended(call), 5)
    return read_failure(raised.value)


async def _ended(call: Any) -> None:
    if hasattr(call, "__aiter__"):
        async for _ in call:
            pass
    else:
        await call


def _all_kinds(error: Exception) -> Echo:
    async def say(_request: Any, _context: Any) -> Text:
        raise error

    async def stream(_request: Any, _context: Any) -> AsyncIterator[Text]:
        yield Text(value="first")
        raise error

    async def talk(requests: Any, _context: Any) -> AsyncIterator[Text]:
        async for request in requests:
            yield request
        raise error

    return Echo(Say=say, Stream=stream, Collect=say, Talk=talk)


def _calls(c: Client) -> list[Any]:
    one = Text(value="x")
    return [c.say(one), c.stream(one), c.collect(iter([one])), c.talk(iter([one]))]


async def test_a_failure_comes_back_whole_from_each_kind_of_rpc() -> None:
    sent = Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_FIELD",
        "看看 content",
        violations=(Violation("memory.content", "at most 16 KiB"), Violation("types", "≤ 4")),
        metadata={"limit": "16384"},
        retry_after=1.5,
    )
    async with serving(_all_kinds(sent)) as server, client(server) as c:
        for call in _calls(c):
            got = await _failure(call)
            assert vars(got) == vars(sent)


async def test_a_known_error_gets_the_code_that_the_service_gives_it() -> None:
    async with serving(_all_kinds(Odd("not now"))) as server, client(server) as c:
        for call in _calls(c):
            got = await _failure(call)
            assert (got.code, got.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ODD")


async def test_a_known_error_is_found_inside_an_exception_group() -> None:
    group = ExceptionGroup("two", [KeyError("x"), ExceptionGroup("one", [Odd("inner")])])
    async with serving(_all_kinds(group)) as server, client(server) as c:
        assert (await _failure(c.say(Text()))).message == "inner"


async def test_the_text_of_an_unknown_error_stays_in_the_log() -> None:
    with capture_logs() as lines:
        async with serving(_all_kinds(RuntimeError(SECRET))) as server, client(server) as c:
            for call in _calls(c):
                got = await _failure(call)
                assert (got.code, got.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
                assert "secret" not in str(vars(got))
    failed = [line for line in lines if line["event"] == "rpc_failed"]
    assert len(failed) == 4
    assert all(line["exc_info"] and line["log_level"] == "error" for line in failed)


async def test_an_error_in_the_mapping_of_errors_does_not_leak() -> None:
    async def say(_request: Any, _context: Any) -> Text:
        raise ValueError(SECRET)

    def broken(error: Exception) -> Failure | None:
        raise KeyError(str(error))

    async with serving(Echo(Say=say), known=broken) as server, client(server) as c:
        got = await _failure(c.say(Text()))
        assert (got.code, got.message) == (
            grpc.StatusCode.INTERNAL,
            "something went wrong on our side",
        )


async def test_an_answer_of_the_wrong_type_does_not_leak() -> None:
    async def say(_request: Any, _context: Any) -> str:
        return SECRET

    async def stream(_request: Any, _context: Any) -> AsyncIterator[str]:
        yield SECRET

    async with serving(Echo(Say=say, Stream=stream)) as server, client(server) as c:
        for call in (c.say(Text()), c.stream(Text())):
            got = await _failure(call)
            assert (got.code, got.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")


async def test_a_cancelled_inner_task_gives_a_status_at_once() -> None:
    async def inner_cancel(_request: Any, _context: Any) -> Text:
        task = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task
        return Text()

    async def stream(request: Any, context: Any) -> AsyncIterator[Text]:
        yield Text(value="one")
        yield await inner_cancel(request, context)

    async with serving(Echo(Say=inner_cancel, Stream=stream)) as server, client(server) as c:
        for call in (c.say(Text(), timeout=30), c.stream(Text(), timeout=30)):
            got = await _failure(call)
            assert (got.code, got.reason) == (grpc.StatusCode.INTERNAL, "CANCELLED_WITHIN")


async def test_a_40_kb_text_in_chinese_arrives_with_its_code() -> None:
    failure = Failure(
        grpc.StatusCode.ABORTED,
        "BUSY",
        "记忆" * 7000,
        violations=tuple(Violation(f"字段{n}", "不行" * 500) for n in range(40)),
        metadata={"why": "因为" * 9000},
    )
    async with serving(_all_kinds(failure)) as server, client(server) as c:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await c.say(Text())
        got = read_failure(raised.value)
        details = dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
    assert (got.code, got.reason) == (grpc.StatusCode.ABORTED, "BUSY")
    assert got.message == "记忆" * 49 + "记…"
    assert len(details) < 1024
    assert len(got.violations) + int(got.metadata["violations_left_out"]) == 40


async def test_bytes_that_do_not_parse_are_refused_in_each_kind_of_rpc() -> None:
    bad = b"\x0a\xff\xff"
    async with serving() as server, client(server) as c:
        for call in (
            c.raw_say(bad),
            c.raw_stream(bad),
            c.raw_collect(iter([b"\x0a\x01x", bad])),
            c.raw_talk(iter([bad])),
        ):
            got = await _failure(call)
            assert (got.code, got.reason) == (
                grpc.StatusCode.INVALID_ARGUMENT,
                "MALFORMED_MESSAGE",
            )
            assert got.message == "the bytes are not a message of this RPC"


async def test_text_that_is_not_utf_8_is_malformed() -> None:
    async with serving() as server, client(server) as c:
        got = await _failure(c.raw_say(b"\x0a\x02\xff\xfe"))
        assert got.reason == "MALFORMED_MESSAGE"


async def test_a_message_over_the_limit_is_refused_and_the_server_lives_on() -> None:
    big = Text(value="x" * (4 * 1024 * 1024))
    async with serving() as server, client(server, max_message_bytes=64 * 1024 * 1024) as c:
        for call in (c.say(big), c.stream(big), c.collect(iter([big])), c.talk(iter([big]))):
            assert (await _failure(call)).code is grpc.StatusCode.RESOURCE_EXHAUSTED
        almost = Text(value="x" * (4 * 1024 * 1024 - 16))
        assert await c.say(almost) == almost


async def test_an_answer_over_the_limit_is_an_error_and_the_server_lives_on() -> None:
    async def say(request: Text, _context: Any) -> Text:
        return Text(value="x" * int(request.value))

    async with serving(Echo(Say=say)) as server, client(server) as c:
        got = await _failure(c.say(Text(value=str(5 * 1024 * 1024)), timeout=5))
        assert got.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await c.say(Text(value="3"))).value == "xxx"


async def test_handlers_known_by_method_only_and_handlers_of_bytes_work_too() -> None:
    async def shout(request: bytes, _context: Any) -> bytes:
        return request.upper()

    def add(servicer: Echo, server: Any) -> None:
        plain: Any = grpc.unary_unary_rpc_method_handler(servicer.Say)
        generic = grpc.method_handlers_generic_handler(NAME, {"Say": plain})
        server.add_generic_rpc_handlers((generic,))

    odd = replace(service(Echo(Say=shout)), add=add)
    server = await start(LOOPBACK, odd, ready=always)
    async with client(server) as c:
        assert await c.raw_say(b"hey") == b"HEY"
        got = await _failure(c.raw_stream(b"hey"))
        assert got.code is grpc.StatusCode.UNIMPLEMENTED
    await server.stop(0)


async def test_a_method_that_nobody_serves_is_refused_with_a_reason() -> None:
    async with serving() as server, grpc.aio.insecure_channel(server.address) as plain:
        channel: Any = plain
        for method in ("/no.Service/Say", f"/{NAME}/NoMethod"):
            for call in (
                channel.unary_unary(method)(b"hey"),
                channel.unary_stream(method)(b"hey"),
                channel.stream_unary(method)(iter([b"hey", b"hey"])),
                channel.stream_stream(method)(),
            ):
                got = await _failure(call)
                assert got.code is grpc.StatusCode.UNIMPLEMENTED
                assert got.reason == "UNKNOWN_METHOD"


async def test_a_handler_may_end_its_call_itself() -> None:
    async def say(_request: Any, context: Any) -> Text:
        await context.abort(grpc.StatusCode.OUT_OF_RANGE, "beyond")
        raise AssertionError

    async def stream(_request: Any, context: Any) -> None:
        await context.write(Text(value="by hand"))
        context.set_code(grpc.StatusCode.DATA_LOSS)

    async with serving(Echo(Say=say, Stream=stream)) as server, client(server) as c:
        got = await _failure(c.say(Text()))
        assert (got.code, got.message) == (grpc.StatusCode.OUT_OF_RANGE, "beyond")
        assert (await _failure(c.stream(Text()))).code is grpc.StatusCode.DATA_LOSS
