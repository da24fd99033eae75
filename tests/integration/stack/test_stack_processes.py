"""Starting and ending programs: small ones that do as a test says stand in for the services."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stack.failures import StartFailed, Stopped
from stack.plan import Program
from stack.processes import Processes, http_ready
from tests.e2e.processes import ROOT, poll
from tests.services.mariadb import free_port

PROGRAM = """
import http.server, os, signal, sys, time

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

def serve():
    port = int(os.environ["PORT"])
    http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()

exec(os.environ[sys.argv[1].upper()])
"""
MODULE = "a_small_program"
Make = Callable[..., Program]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Give programs; serve and migrate are what they do."""
    (tmp_path / f"{MODULE}.py").write_text(PROGRAM, encoding="utf-8")

    def program(
        serve: str = "serve()", migrate: str = "", *, name: str = "gateway", migrates: bool = False
    ) -> Program:
        port = free_port()
        environment = os.environ | {
            "PYTHONPATH": str(tmp_path),
            "PORT": str(port),
            "SERVE": serve,
            "MIGRATE": migrate,
        }
        return Program(name, MODULE, f"127.0.0.1:{port}", environment, migrates=migrates)

    return program


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def processes(tmp_path: Path, stop: threading.Event) -> Iterator[Processes]:
    processes = Processes(tmp_path / "logs", stop, ready_within=20, stop_within=0.5)
    try:
        yield processes
    finally:
        processes.stop()


def refusal(processes: Processes, *programs: Program) -> str:
    """Give the one line that tells why they did not start."""
    with pytest.raises(StartFailed) as caught:
        processes.start(programs)
    (line,) = str(caught.value).splitlines()
    return line


def test_a_started_program_is_ready_and_ends_when_it_is_asked_to(
    processes: Processes, make: Make
) -> None:
    program = make()
    processes.start([program])
    assert http_ready(program.address)
    assert processes.what_ended() == ""
    processes.stop()
    assert not http_ready(program.address)


def test_a_program_that_ends_before_it_is_ready_is_told_with_its_last_line(
    processes: Processes, make: Make, tmp_path: Path
) -> None:
    line = refusal(processes, make("print('first'); sys.exit('there is no such embedder')"))
    log = tmp_path / "logs" / "gateway.log"
    assert line == f"gateway ended by itself (exit code 1), see {log}: there is no such embedder"


def test_a_program_that_ends_while_another_starts_is_not_waited_for(
    processes: Processes, make: Make
) -> None:
    slow, broken = make("time.sleep(600)"), make("sys.exit(2)", name="agent")
    line = refusal(processes, slow, broken)
    assert line.startswith("agent ended by itself (exit code 2)")
    assert line.endswith("nothing was logged")


def test_a_program_that_never_gets_ready_is_given_up(
    tmp_path: Path, stop: threading.Event, make: Make
) -> None:
    processes = Processes(tmp_path / "logs", stop, ready_within=0.0)
    try:
        line = refusal(processes, make("time.sleep(600)"))
        assert line.startswith("gateway is not ready, see ")
    finally:
        processes.stop()


def test_a_failed_migration_is_told_and_nothing_is_served(processes: Processes, make: Make) -> None:
    program = make("serve()", "sys.exit('the database is away')", migrates=True)
    line = refusal(processes, program)
    assert line.startswith("gateway could not migrate its database, see ")
    assert line.endswith(": the database is away")
    assert not http_ready(program.address)


def test_a_program_is_migrated_before_it_serves(
    processes: Processes, make: Make, tmp_path: Path
) -> None:
    done = tmp_path / "migrated"
    serve = f"assert os.path.exists({str(done)!r}); serve()"
    processes.start([make(serve, f"open({str(done)!r}, 'w')", migrates=True)])


def test_who_stops_while_a_program_starts_does_not_wait_for_it(
    processes: Processes, make: Make, stop: threading.Event
) -> None:
    stop.set()
    with pytest.raises(Stopped):
        processes.start([make("time.sleep(600)")])
    with pytest.raises(Stopped):
        processes.start([make(migrates=True)])


def test_a_program_that_does_not_stop_is_killed_and_that_is_said(
    processes: Processes, make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    program = make("signal.signal(signal.SIGTERM, signal.SIG_IGN); serve()")
    processes.start([program])
    processes.stop()
    assert capsys.readouterr().err == "gateway did not stop in 0.5 s; killed\n"
    assert not http_ready(program.address)


def test_a_program_that_was_killed_is_told_by_its_signal(processes: Processes, make: Make) -> None:
    line = refusal(processes, make("os.kill(os.getpid(), signal.SIGKILL)"))
    assert line.startswith("gateway ended by itself (SIGKILL), see ")


KILLED = """
import os, sys, threading, time
from pathlib import Path
from stack.plan import Program
from stack.processes import Processes
logs, module, address = sys.argv[1:]
program = Program("gateway", module, address, os.environ, migrates=False)
Processes(Path(logs), threading.Event()).start([program])
print("up", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children of the killed")
def test_a_program_ends_with_a_stack_that_is_killed(make: Make, tmp_path: Path) -> None:
    program = make()
    path = os.pathsep.join((program.environment["PYTHONPATH"], str(ROOT)))
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "logs"), MODULE, program.address],
        env={**program.environment, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
    ) as stack:
        assert stack.stdout is not None
        assert stack.stdout.readline() == b"up\n"
        assert http_ready(program.address)
        stack.kill()
    poll(lambda: http_ready(program.address), lambda ready: not ready)


def test_what_is_no_http_server_is_not_ready(make: Make) -> None:
    program = make()
    answer = (
        "import socket, sys\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "print('up', flush=True)\n"
        "connection, _ = listener.accept()\n"
        "connection.recv(100)\n"
        "connection.sendall(b'SSH-2.0\\r\\n')\n"
        "connection.close()\n"
    )
    port = program.address.rpartition(":")[2]
    with subprocess.Popen([sys.executable, "-c", answer, port], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"up\n"
        assert not http_ready(program.address)
    assert not http_ready(program.address)
