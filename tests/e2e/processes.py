"""Programs of ours as real processes: started, asked, killed and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rpc.probe import serving
from tests.services.mariadb import free_port

ROOT = Path(__file__).parents[2]
CLOSED = "127.0.0.1:1"
"""Nothing listens there."""

_NOT_INHERITED = ("MEMORY_", "AGENT_", "GATEWAY_", "COVERAGE_")
"""Settings of ours; and coverage, which costs a program a third of its time: the lines that run
here run in the tests of tests/integration as well."""

_Answer = TypeVar("_Answer")


def poll(
    ask: Callable[[], _Answer], until: Callable[[_Answer], object], *, within: float = 60.0
) -> _Answer:
    """Ask until the answer is right, and give it; what it was last if it never is."""
    end = time.monotonic() + within
    while not until(answer := ask()):
        assert time.monotonic() < end, f"after {within} s it still was {answer!r}"
        time.sleep(0.05)
    return answer


def clean_environment() -> dict[str, str]:
    """Give the environment of the tests without what a program must not inherit."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_NOT_INHERITED)}


class Program:
    """One of our packages as a process of its own, always at the same address.

    listen names the variable that takes the address. Only the knobs given are set.
    """

    def __init__(self, package: str, listen: str, knobs: Mapping[str, str], folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.log = folder / f"{package}.log"
        self._package = package
        self._environment = {**clean_environment(), listen: self.address, **knobs}
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def start(self, *arguments: str, within: float = 60.0) -> None:
        """Serve, and return when health says SERVING."""
        self._process = self.spawn("serve", *arguments)
        end = time.monotonic() + within
        while not serving(self.address):
            assert self.process.poll() is None, f"it ended:\n{self.log.read_text()[-2000:]}"
            assert time.monotonic() < end, f"it is not ready:\n{self.log.read_text()[-2000:]}"
            time.sleep(0.05)

    def spawn(self, *arguments: str, **knobs: str) -> subprocess.Popen[bytes]:
        """Begin a command beside it that the caller ends."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command(*arguments),
                cwd=ROOT,
                env=self._environment | knobs,
                stdout=log,
                stderr=log,
            )

    def run(self, *arguments: str, **knobs: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, which must be near."""
        return subprocess.run(
            self._command(*arguments),
            cwd=ROOT,
            env=self._environment | knobs,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def kill(self) -> None:
        """Kill -9 it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end, and give its exit code."""
        self.process.terminate()
        return self.process.wait(30)

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", self._package, *arguments]

    def clear(self) -> None:
        """Leave nothing running."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


@contextmanager
def memory_program(folder: Path, **knobs: str) -> Iterator[Program]:
    """Give a memory service that is not started yet, its data in the folder; hash embeds."""
    chosen = {"MEMORY_DATA_DIR": str(folder), "MEMORY_EMBEDDER": "hash"} | knobs
    program = Program("memory_service", "MEMORY_LISTEN", chosen, folder)
    try:
        yield program
    finally:
        program.clear()
