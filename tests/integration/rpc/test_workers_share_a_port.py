import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from rpc.listen import BadListen, ListenFailed
from rpc.workers import WorkerMain, run_workers
from tests.integration.rpc.echo import (
    NAME,
    Text,
    broken_worker,
    deaf_worker,
    worker,
)
from tests.services.mariadb import free_port

ROOT = Path(__file__).parents[3]
Lines = list[MutableMapping[str, Any]]
PARENT = """
import sys
from rpc.workers import run_workers
from tests.integration.rpc.echo import worker
if __name__ == "__main__":
    sys.exit(run_workers(2, sys.argv[1], worker))
"""


def _until(true: Callable[[], bool]) -> None:
    for _ in range(1200):
        if true():
            return
        time.sleep(0.05)
    pytest.fail("it never came true")


def _pids(lines: Lines) -> list[int]:
    return [line["pid"] for line in lines if line["event"] == "worker_started"]


def _alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "zombie" not in status.read_text()


def _answers(address: str) -> set[str]:
    """Ask on fresh connections, which the kernel shares out among the workers that listen."""
    seen = set()
    for _ in range(12):
        with grpc.insecure_channel(address, (("grpc.use_local_subchannel_pool", 1),)) as channel:
            say = channel.unary_unary(
                f"/{NAME}/Say",
                request_serializer=Text.SerializeToString,
                response_deserializer=Text.FromString,
            )
            try:
                seen.add(say(Text(), timeout=5).value)
            except grpc.RpcError:
                time.sleep(0.05)
    return seen


class _Group:
    """Runs workers in the main thread, and beside them what a test does to them."""

    def __init__(self, script: Callable[[str, Lines], None], main: WorkerMain = worker) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.wrong: list[BaseException] = []
        self._script = script
        self._main = main
        self._done = threading.Event()

    def run(self, settle: float = 60) -> tuple[int, Lines]:
        with capture_logs() as lines:
            beside = threading.Thread(target=self._beside, args=(lines,))
            beside.start()
            code = run_workers(2, self.address, self._main, grace=1, settle=settle)
            self._done.set()
            beside.join()
        assert self.wrong == []
        assert not any(_alive(pid) for pid in _pids(lines))
        return code, lines

    def _beside(self, lines: Lines) -> None:
        try:
            _until(lambda: self._done.is_set() or len(_pids(lines)) == 2)
            self._script(self.address, lines)
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            self.wrong.append(error)
        finally:
            if not self._done.is_set():
                os.kill(os.getpid(), signal.SIGTERM)


def test_two_workers_answer_on_one_port_until_a_signal() -> None:
    def script(address: str, _lines: Lines) -> None:
        _until(lambda: _answers(address) == {"0", "1"})
        with pytest.raises(ListenFailed, match=f"^cannot listen on {address}: .*in use"):
            run_workers_elsewhere(address)

    code, lines = _Group(script).run()
    assert code == 0
    assert len(_pids(lines)) == 2


def run_workers_elsewhere(address: str) -> None:
    """Raise what a second group on the same port raises in its own process."""
    script = (
        "import sys; from rpc.workers import run_workers; from tests.integration.rpc.echo import "
        "worker; from rpc.listen import ListenFailed\n"
        "try: run_workers(2, sys.argv[1], worker)\n"
        "except ListenFailed as error: sys.exit(str(error))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, address],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    raise ListenFailed(ended.stderr.strip())


def test_a_worker_that_dies_is_replaced_and_said_so() -> None:
    def script(address: str, lines: Lines) -> None:
        _until(lambda: _answers(address) == {"0", "1"})
        os.kill(_pids(lines)[0], signal.SIGKILL)
        _until(lambda: len(_pids(lines)) == 3)
        _until(lambda: _answers(address) == {"0", "1"})

    code, lines = _Group(script).run(settle=0)
    assert code == 0
    died = [line for line in lines if line["event"] == "worker_died"]
    assert [(line["worker"], line["exit_code"]) for line in died] == [(0, -signal.SIGKILL)]


def test_workers_that_cannot_start_end_the_group() -> None:
    def script(_address: str, lines: Lines) -> None:
        _until(lambda: any(line["event"] == "worker_died" for line in lines))
        time.sleep(0.1)

    code, _ = _Group(script, broken_worker).run()
    assert code == 1


def test_a_worker_that_will_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEAF_WORKERS", str(tmp_path))

    def script(_address: str, _lines: Lines) -> None:
        _until(lambda: len(list(tmp_path.iterdir())) == 2)

    code, lines = _Group(script, deaf_worker).run()
    assert code == 1
    assert [line["event"] for line in lines].count("worker_killed") == 2


@contextmanager
def _parent(folder: Path, address: str) -> Iterator[subprocess.Popen[bytes]]:
    script = folder / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, str(script), address], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_workers_end_when_their_parent_is_gone(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with _parent(tmp_path, address) as process:
        _until(lambda: _answers(address) == {"0", "1"})
        process.kill()
        _until(lambda: _answers(address) == set())


def test_a_unix_socket_cannot_be_shared() -> None:
    with pytest.raises(BadListen, match="share a TCP port"):
        run_workers(2, "unix:/tmp/x.sock", worker)


def test_a_port_that_somebody_has_is_refused_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ListenFailed, match=r"^cannot listen on 127.0.0.1:\d+: .*in use"):
            run_workers(2, f"127.0.0.1:{taken.getsockname()[1]}", worker)


def test_a_system_that_cannot_share_ports_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    with pytest.raises(ListenFailed, match="SO_REUSEPORT"):
        run_workers(2, "127.0.0.1:0", worker)
