"""The socket and the signals of the process."""

import os
import signal
import socket
from pathlib import Path

import pytest

from gateway.__main__ import main
from gateway.serving import serve_until_signal
from gateway.settings import GatewaySettings


def test_a_taken_address_ends_with_1_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("GATEWAY_LISTEN", f"127.0.0.1:{taken.getsockname()[1]}")
        assert main(["serve"]) == 1
    assert "Address already in use\n" in capsys.readouterr().err


def test_a_host_that_is_none_ends_with_1_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_LISTEN", "no-such-host.invalid:0")
    monkeypatch.setenv("GATEWAY_API_KEYS_FILE", str(tmp_path / "keys.json"))
    assert main(["serve"]) == 1
    assert "gateway: cannot listen on no-such-host.invalid:0: " in capsys.readouterr().err


async def test_it_says_where_it_listens_and_ends_at_a_signal() -> None:
    said: list[str] = []

    def announce(address: str) -> None:
        said.append(address)
        os.kill(os.getpid(), signal.SIGTERM)

    await serve_until_signal(GatewaySettings(listen="127.0.0.1:0"), announce)
    (address,) = said
    assert address.startswith("127.0.0.1:")
    assert not address.endswith(":0")
