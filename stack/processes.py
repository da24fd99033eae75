"""Starting programs, waiting until they are ready, and ending them."""

import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rpc.probe import serving
from stack.plan import Program

READY_WITHIN = 120.0
"""Seconds: a first start makes databases and loads the embedder, on a busy machine too."""
STOP_WITHIN = 20.0
LOOK_EVERY = 0.1


class StartFailed(Exception):
    """A program did not come up; the text says which, why, and what to do."""


class Stopped(Exception):
    """The user asked to stop while a program was starting."""


class Processes:
    """The programs that were started, ended in reverse order."""

    def __init__(self, logs: Path, stop: threading.Event) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        self._stop = stop
        self._running: list[tuple[Program, subprocess.Popen[bytes]]] = []

    def log(self, program: Program) -> Path:
        """Give the file that the program's log goes to."""
        return self._logs / f"{program.name}.log"

    def start(self, program: Program) -> None:
        """Migrate its database if it has one, start it, and wait until it is ready."""
        _refuse_taken(program)
        if program.migrates:
            self._migrate(program)
        with self.log(program).open("ab") as log:
            child = subprocess.Popen(  # noqa: S603 — our own module, no shell
                [sys.executable, "-m", program.module, "serve"],
                env=dict(program.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches us alone, and we end them in order
            )
        self._running.append((program, child))
        self._wait_until_ready(program, child)

    def first_ended(self) -> Program | None:
        """Give a program that has ended by itself."""
        return next((program for program, child in self._running if child.poll() is not None), None)

    def stop(self) -> None:
        """Ask each to stop, the one that others depend on last, and kill what will not."""
        for program, child in reversed(self._running):
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"{program.name} did not stop in {STOP_WITHIN:.0f} s; killed\n")
                child.kill()
                child.wait()
        self._running.clear()

    def _migrate(self, program: Program) -> None:
        with self.log(program).open("ab") as log:
            done = subprocess.run(  # noqa: S603 — our own module, no shell
                [sys.executable, "-m", program.module, "migrate"],
                env=dict(program.environment),
                stdout=log,
                stderr=log,
                check=False,
            )
        if done.returncode != 0:
            raise StartFailed(self._explain(program, "could not migrate its database"))

    def _wait_until_ready(self, program: Program, child: subprocess.Popen[bytes]) -> None:
        ready = _http_ready if program.name == "gateway" else serving
        until = time.monotonic() + READY_WITHIN
        while not ready(program.address):
            if child.poll() is not None:
                raise StartFailed(self._explain(program, f"ended with code {child.returncode}"))
            if time.monotonic() > until:
                raise StartFailed(self._explain(program, "is not ready"))
            if self._stop.wait(LOOK_EVERY):
                raise Stopped

    def _explain(self, program: Program, what: str) -> str:
        tail = self.log(program).read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
        return "\n".join([f"{program.name} {what}. The end of {self.log(program)}:", *tail])


def _refuse_taken(program: Program) -> None:
    host, _, port = program.address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(1.0)
        if probe.connect_ex((host, int(port))) == 0:
            message = (
                f"{program.address} is taken, so {program.name} cannot listen there. "
                f"Stop what runs there, or choose another port with --{program.name}-port."
            )
            raise StartFailed(message)


def _http_ready(address: str) -> bool:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=1.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


def start_all(
    processes: Processes, programs: Sequence[Program], say: Callable[[str], None]
) -> None:
    """Start the programs one after the other and say so."""
    for program in programs:
        say(f"starting {program.name} …")
        processes.start(program)
