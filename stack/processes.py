"""Starting programs, waiting until they are ready, and ending them."""

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rpc.probe import serving
from stack.failures import StartFailed, Stopped
from stack.plan import Program

READY_WITHIN = 120.0
"""Seconds: a first start makes databases and loads the embedder, on a busy machine too."""
STOP_WITHIN = 20.0
LOOK_EVERY = 0.1

_BOUND = (sys.executable, "-IS", str(Path(__file__).with_name("child.py")))
"""Begins the command of what ends with this process; nothing but the standard library is loaded."""


class Processes:
    """The programs that were started, ended in reverse order. They log into a folder.

    On Linux they also end when this process is killed; see child.
    Each is waited for at most so many seconds, and ended by force after so many.
    """

    def __init__(
        self,
        logs: Path,
        stop: threading.Event,
        *,
        ready_within: float = READY_WITHIN,
        stop_within: float = STOP_WITHIN,
    ) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        self._stop = stop
        self._ready_within = ready_within
        self._stop_within = stop_within
        self._running: list[tuple[Program, subprocess.Popen[bytes]]] = []

    def start(self, programs: Sequence[Program]) -> None:
        """Start them side by side, and return when each is ready.

        Raises StartFailed, and Stopped when the user does not want to wait any more.
        """
        for program in programs:
            if program.migrates:
                self._migrate(program)
            self._running.append((program, self._run(program, "serve")))
        for program in programs:
            self._wait_until_ready(program)

    def what_ended(self) -> str:
        """Say which program has ended by itself, and why; empty while all run."""
        for program, child in self._running:
            if child.poll() is not None:
                return self._explain(program, f"ended by itself ({_ending(child.returncode)})")
        return ""

    def stop(self) -> None:
        """Ask each to stop, the one that others depend on last, and kill what will not."""
        for program, child in reversed(self._running):
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(self._stop_within)
            except subprocess.TimeoutExpired:
                sys.stderr.write(
                    f"{program.name} did not stop in {self._stop_within:g} s; killed\n"
                )
                child.kill()
                child.wait()
        self._running.clear()

    def _run(self, program: Program, command: str) -> "subprocess.Popen[bytes]":
        with self._log(program).open("ab") as log:
            return subprocess.Popen(  # noqa: S603 — our own module, no shell
                [*_BOUND, str(os.getpid()), "-m", program.module, command],
                env=dict(program.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches us alone, and we end them in order
            )

    def _migrate(self, program: Program) -> None:
        if self._run(program, "migrate").wait() != 0:
            raise StartFailed(self._explain(program, "could not migrate its database"))
        if self._stop.is_set():
            raise Stopped

    def _wait_until_ready(self, program: Program) -> None:
        ready = http_ready if program.name == "gateway" else serving
        until = time.monotonic() + self._ready_within
        while not ready(program.address):
            if ended := self.what_ended():
                raise StartFailed(ended)
            if time.monotonic() > until:
                raise StartFailed(self._explain(program, "is not ready"))
            if self._stop.wait(LOOK_EVERY):
                raise Stopped

    def _explain(self, program: Program, what: str) -> str:
        """Give one line, with the last one of the log: there a program says why it ends."""
        log = self._log(program)
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next(
            (line.strip() for line in reversed(lines) if line.strip()), "nothing was logged"
        )
        return f"{program.name} {what}, see {log}: {last}"

    def _log(self, program: Program) -> Path:
        return self._logs / f"{program.name}.log"


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def http_ready(address: str) -> bool:
    """Tell whether a gateway answers at host:port."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=1.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
