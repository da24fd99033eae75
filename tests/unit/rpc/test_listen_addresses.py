import asyncio
import sys

import pytest
import uvloop

from rpc.keepalive import Keepalive, client_options, server_options
from rpc.listen import BadListen, Tcp, Unix, UnsafeListen, check_safe, parse, shifted
from rpc.loop import run


@pytest.mark.parametrize(
    ("text", "address", "again"),
    [
        ("127.0.0.1:9088", Tcp("127.0.0.1", 9088), "127.0.0.1:9088"),
        ("localhost:0", Tcp("127.0.0.1", 0), "127.0.0.1:0"),
        ("[::1]:9088", Tcp("::1", 9088), "[::1]:9088"),
        (":9088", Tcp("::", 9088), "[::]:9088"),
        ("memory.local:1", Tcp("memory.local", 1), "memory.local:1"),
        ("unix:/run/m.sock", Unix("/run/m.sock"), "unix:/run/m.sock"),
        ("unix:///run/m.sock", Unix("/run/m.sock"), "unix:/run/m.sock"),
    ],
)
def test_addresses_are_read_and_written(text: str, address: Tcp | Unix, again: str) -> None:
    assert parse(text) == address
    assert str(address) == again


@pytest.mark.parametrize(
    "text", ["", "9088", "127.0.0.1", "127.0.0.1:", "h:x", "h:65536", "h:-1", "::1:9088", "unix:"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadListen, match="is not an address to listen on"):
        parse(text)


@pytest.mark.parametrize("text", ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:x"])
def test_addresses_of_this_machine_need_no_token(text: str) -> None:
    check_safe(parse(text), "")


@pytest.mark.parametrize("text", ["0.0.0.0:1", "[::]:1", ":1", "10.0.0.1:1", "host:1"])
def test_addresses_that_others_reach_need_a_token(text: str) -> None:
    check_safe(parse(text), "token")
    with pytest.raises(UnsafeListen, match="without a service token"):
        check_safe(parse(text), "")


def test_a_shifted_address_keeps_the_free_port() -> None:
    assert shifted(Tcp("h", 9100), 2) == Tcp("h", 9102)
    assert shifted(Tcp("h", 0), 2) == Tcp("h", 0)


def test_a_server_allows_more_pings_than_its_clients_send() -> None:
    keepalive = Keepalive(interval=20, timeout=5)
    server, client = dict(server_options(keepalive)), dict(client_options(keepalive))
    allowed = int(server["grpc.http2.min_ping_interval_without_data_ms"])
    assert allowed * 2 <= int(client["grpc.keepalive_time_ms"])
    assert server["grpc.keepalive_permit_without_calls"] == 1


async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_a_process_runs_under_uvloop() -> None:
    assert isinstance(run(_loop()), uvloop.Loop)


def test_a_process_runs_without_uvloop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert not isinstance(run(_loop()), uvloop.Loop)
