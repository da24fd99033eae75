import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest

from rpc.keepalive import Keepalive, client_options
from tests.integration.rpc.echo import LOOPBACK, Client, Echo, Text, client, serving

SILENCE = 6.0
SCALED = Keepalive(interval=1.0, timeout=1.0)  # a gRPC client pings at most once a second


async def _thinks(_request: Text, _context: Any) -> AsyncIterator[Text]:
    yield Text(value="thinking")
    await asyncio.sleep(SILENCE)
    yield Text(value="done")


async def _words(c: Client) -> list[str]:
    return [answer.value async for answer in c.stream(Text())]


async def test_a_stream_that_is_silent_for_long_is_not_sent_away() -> None:
    settings = replace(LOOPBACK, keepalive=SCALED)
    async with (
        serving(Echo(Stream=_thinks), settings) as server,
        client(server, keepalive=SCALED) as c,
    ):
        assert await _words(c) == ["thinking", "done"]
        await asyncio.sleep(SILENCE)  # nor is a connection without calls
        assert (await c.say(Text(value="still here"))).value == "still here"


async def test_a_client_that_pings_more_than_the_server_allows_is_sent_away() -> None:
    """Shows that the test above would see too_many_pings."""
    async with (
        serving(Echo(Stream=_thinks)) as server,
        grpc.aio.insecure_channel(server.address, options=client_options(SCALED)) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await _words(Client(channel))
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_that_vanished_is_noticed() -> None:
    """The proxy stops forwarding but keeps both connections open, as a dead network does."""
    left = asyncio.Event()

    async def waits(_request: Text, _context: Any) -> AsyncIterator[Text]:
        try:
            yield Text(value="thinking")
            await asyncio.Event().wait()
        finally:
            left.set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)

    pumps: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []
    settings = replace(LOOPBACK, keepalive=Keepalive(interval=0.2, timeout=0.5))
    async with serving(Echo(Stream=waits), settings) as server:

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", server.port)
            writers.extend((writer, up_writer))
            pumps.append(asyncio.create_task(forward(reader, up_writer)))
            pumps.append(asyncio.create_task(forward(up_reader, writer)))

        proxy = await asyncio.start_server(accept, "127.0.0.1", 0, family=socket.AF_INET)
        port = proxy.sockets[0].getsockname()[1]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = Client(channel).stream(Text())
            await call.read()
            for pump in pumps:
                pump.cancel()
            async with asyncio.timeout(10):
                await left.wait()
            proxy.close()
            for writer in writers:
                writer.close()
