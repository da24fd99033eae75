import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from rpc.channel import open_channel
from rpc.errors import read_failure
from rpc.server import (
    ListenFailed,
    RunningServer,
    ServerSettings,
    UnsafeListen,
    serve_until_signal,
    start,
)
from tests.integration.rpc.echo import (
    LOOPBACK,
    NAME,
    Echo,
    Text,
    always,
    client,
    service,
    serving,
)

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class _Slow:
    """A stream that says "begun", and "done" when the test lets it go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.saw_the_end = False

    async def stream(self, _request: Any, _context: Any) -> AsyncIterator[Text]:
        yield Text(value="begun")
        try:
            await self.go_on.wait()
        finally:
            self.saw_the_end = True
        yield Text(value="done")

    async def deaf(self, _request: Any, _context: Any) -> AsyncIterator[Text]:
        yield Text(value="begun")
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                continue


async def _health(channel: grpc.aio.Channel, name: str = "") -> Any:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return (await stub.Check(health_pb2.HealthCheckRequest(service=name))).status


async def _until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while not await true():  # noqa: ASYNC110 - another process or thread makes it true
            await asyncio.sleep(0.02)


async def test_health_follows_ready_from_the_start_for_both_names() -> None:
    is_ready = False

    async def ready() -> bool:
        return is_ready

    settings = replace(LOOPBACK, poll=0.02)
    async with serving(settings=settings, ready=ready) as server, client(server) as c:
        for name in ("", NAME):
            assert await _health(c.channel, name) == NOT_SERVING
        is_ready = True
        for name in ("", NAME):
            await _until(partial(_is, c.channel, name, SERVING))
        is_ready = False
        for name in ("", NAME):
            await _until(partial(_is, c.channel, name, NOT_SERVING))


async def _is(channel: grpc.aio.Channel, name: str, status: Any) -> bool:
    return bool(await _health(channel, name) == status)


async def test_a_ready_that_raises_or_hangs_is_not_ready() -> None:
    async def raises() -> bool:
        message = "the database is away"
        raise OSError(message)

    async def hangs() -> bool:
        await asyncio.sleep(60)
        return True

    settings = replace(LOOPBACK, poll_timeout=0.05)
    for ready in (raises, hangs):
        async with serving(settings=settings, ready=ready) as server, client(server) as c:
            assert await _health(c.channel) == NOT_SERVING


async def test_a_running_stream_finishes_while_new_calls_are_refused() -> None:
    slow = _Slow()
    async with serving(Echo(Stream=slow.stream)) as server, client(server) as c:
        stream = c.stream(Text())
        assert (await stream.read()).value == "begun"
        stopping = asyncio.create_task(server.stop(10))
        await asyncio.sleep(0.1)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await c.say(Text(), timeout=5)
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not stopping.done()
        slow.go_on.set()
        assert (await stream.read()).value == "done"
        assert await stream.code() is grpc.StatusCode.OK
        async with asyncio.timeout(5):
            await stopping
            await server.wait()


async def test_a_stream_past_the_grace_ends_with_a_reason() -> None:
    slow = _Slow()
    with capture_logs() as lines:
        async with serving(Echo(Stream=slow.stream)) as server, client(server) as c:
            stream = c.stream(Text())
            await stream.read()
            begun = time.monotonic()
            await server.stop(0.3)
            assert 0.3 <= time.monotonic() - begun < 2.3
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await stream.read()
    got = read_failure(raised.value)
    assert (got.code, got.reason) == (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
    assert slow.saw_the_end
    assert [line["code"] for line in lines if line["event"] == "rpc"] == ["UNAVAILABLE"]


async def test_a_handler_that_will_not_end_does_not_hold_the_server() -> None:
    slow = _Slow()
    async with serving(Echo(Stream=slow.deaf)) as server, client(server) as c:
        stream = c.stream(Text())
        await stream.read()
        begun = time.monotonic()
        await server.stop(0.2)
        assert time.monotonic() - begun < 2.2
        slow.go_on.set()


async def test_a_health_watcher_is_told_and_does_not_hold_the_server() -> None:
    async with serving() as server, open_channel(server.address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        begun = time.monotonic()
        await server.stop(30)
        assert time.monotonic() - begun < 5
        assert (await watch.read()).status == NOT_SERVING


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_process_after_the_running_stream(number: int) -> None:
    slow = _Slow()
    running: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
    served = asyncio.create_task(
        serve_until_signal(
            replace(LOOPBACK, grace=10),
            service(Echo(Stream=slow.stream)),
            ready=always,
            on_start=running.set_result,
            on_drain=slow.go_on.set,
        )
    )
    async with client(await running) as c:
        stream = c.stream(Text())
        await stream.read()
        os.kill(os.getpid(), number)
        assert (await stream.read()).value == "done"
        async with asyncio.timeout(5):
            await served


async def test_a_second_signal_does_not_wait_for_the_grace() -> None:
    slow = _Slow()
    running: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
    served = asyncio.create_task(
        serve_until_signal(
            replace(LOOPBACK, grace=60),
            service(Echo(Stream=slow.stream)),
            ready=always,
            on_start=running.set_result,
        )
    )
    async with client(await running) as c:
        await c.stream(Text()).read()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)
        assert not served.done()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            await served


async def test_a_worker_listens_only_while_it_is_ready() -> None:
    is_ready = False
    started: list[RunningServer] = []

    async def ready() -> bool:
        return is_ready

    async def refused() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", started[-1].port)
        except ConnectionRefusedError:
            return True
        writer.close()
        return False

    async def serves(times: int) -> bool:
        return len(started) == times and not await refused()

    settings = replace(LOOPBACK, reuse_port=True, poll=0.05)
    served = asyncio.create_task(
        serve_until_signal(settings, service(Echo()), ready=ready, on_start=started.append)
    )
    await asyncio.sleep(0.2)
    assert started == []
    for times in (1, 2):
        is_ready = True
        await _until(partial(serves, times))
        is_ready = False
        await _until(refused)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(5):
        await served


async def test_a_ready_worker_ends_at_a_signal() -> None:
    settings = replace(LOOPBACK, reuse_port=True)
    running: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
    served = asyncio.create_task(
        serve_until_signal(settings, service(Echo()), ready=always, on_start=running.set_result)
    )
    await running
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(5):
        await served


async def test_a_taken_port_is_one_clear_line() -> None:
    async with serving() as server:
        with pytest.raises(ListenFailed, match=f"^cannot listen on {server.address}: .*taken"):
            await start(ServerSettings(listen=server.address), service(Echo()), ready=always)


async def test_others_may_not_reach_a_server_without_a_token() -> None:
    for listen in ("0.0.0.0:0", "[::]:0", ":0", "example.org:0"):
        with pytest.raises(UnsafeListen, match="without a service token"):
            await start(ServerSettings(listen=listen), service(Echo()), ready=always)


async def test_with_a_token_others_may_reach_a_server() -> None:
    settings = ServerSettings(listen="0.0.0.0:0", service_token="t")
    async with (
        serving(settings=settings) as server,
        open_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        assert await _health(channel) == SERVING


async def test_ipv6_loopback_and_unix_sockets_serve(tmp_path: Path) -> None:
    for listen in ("[::1]:0", f"unix:{tmp_path}/s.sock", "localhost:0"):
        async with (
            serving(settings=ServerSettings(listen=listen)) as server,
            client(server) as c,
        ):
            assert (await c.say(Text(value="hi"))).value == "hi"
            assert (server.port == 0) == listen.startswith("unix")


async def test_a_unix_socket_in_use_is_not_taken_away(tmp_path: Path) -> None:
    settings = ServerSettings(listen=f"unix:{tmp_path}/s.sock")
    async with serving(settings=settings) as server, client(server) as c:
        with pytest.raises(ListenFailed, match="another process"):
            await start(settings, service(Echo()), ready=always)
        assert (await c.say(Text(value="hi"))).value == "hi"
