"""`memory-stack up` inside the process of the tests: how it begins and how it ends."""

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.__main__ import FAILED, OK, _parser, main, up
from stack.demo import USER
from stack.processes import http_ready
from tests.e2e.processes import poll
from tests.services.mariadb import free_port

PORTS = ("memory", "agent", "gateway")


class Up:
    """One run of the command, with its data in a folder."""

    def __init__(self, data: Path) -> None:
        self.stop = threading.Event()
        self.ports = {name: free_port() for name in PORTS}
        given = [f"--{name}-port={port}" for name, port in self.ports.items()]
        self._options = _parser().parse_args(["up", "--demo", f"--data={data}", *given])

    def run(self) -> int:
        return up(self._options, self.stop)


@pytest.fixture(autouse=True)
def _light(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_EMBEDDER", "hash")
    monkeypatch.setenv("MEMORY_MILVUS_URI", "off")


def test_it_runs_until_it_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = Up(tmp_path)
    codes: list[int] = []
    running = threading.Thread(target=lambda: codes.append(one.run()))
    running.start()
    printed: list[str] = []

    def so_far() -> str:
        printed.append(capsys.readouterr().out)
        return "".join(printed)

    try:
        text = poll(so_far, lambda out: "Ctrl-C stops everything." in out, within=120)
        assert http_ready(f"127.0.0.1:{one.ports['gateway']}")
    finally:
        one.stop.set()
        running.join()
    assert codes == [OK]
    assert text.startswith("starting memory, agent and gateway …\n")
    assert f'the user "{USER}" has 13 memories' in text
    assert capsys.readouterr().err == ""


def test_a_program_that_cannot_start_ends_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_HEARTBEAT", "99")
    assert Up(tmp_path).run() == FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gateway ended by itself (exit code 2), see ")
    assert "GATEWAY_HEARTBEAT" in line


def test_who_has_stopped_it_already_waits_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Up(tmp_path)
    one.stop.set()
    assert one.run() == OK
    assert capsys.readouterr().err == ""


@pytest.fixture
def signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals_as_before")
def test_a_refusal_is_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert main(["up", f"--data={tmp_path}", f"--memory-port={port}"]) == FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"127.0.0.1:{port} is taken")
