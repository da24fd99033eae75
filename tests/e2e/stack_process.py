"""`memory-stack up` as a real process, and the gateway as a program of its own."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from stack.processes import http_ready
from tests.e2e.processes import ROOT, Program, clean_environment, poll
from tests.services.mariadb import free_port

_LAST_WORDS = "Ctrl-C stops everything."


class Stack:
    """A stack with its data in a folder, always on the same ports. Only the knobs given are set."""

    def __init__(self, folder: Path, *arguments: str, **knobs: str) -> None:
        memory, agent, gateway = free_port(), free_port(), free_port()
        self.memory, self.gateway = f"127.0.0.1:{memory}", f"127.0.0.1:{gateway}"
        self.data = folder / "data"
        self._ports = {"--memory-port": memory, "--agent-port": agent, "--gateway-port": gateway}
        self._arguments = arguments
        self._environment = clean_environment() | knobs
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "not started"
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def printed(self) -> str:
        return (self._folder / "stdout").read_text(encoding="utf-8")

    @property
    def complained(self) -> str:
        return (self._folder / "stderr").read_text(encoding="utf-8")

    def start(self, within: float = 180.0) -> None:
        """Start it, and return when it says that it is ready."""
        self.begin()
        end = time.monotonic() + within
        while _LAST_WORDS not in self.printed:
            assert self.running, f"it ended: {self.complained}"
            assert time.monotonic() < end, f"it is not ready: {self.printed} {self.complained}"
            time.sleep(0.05)

    def begin(self) -> None:
        """Start it, without waiting."""
        streams: Any = {name: (self._folder / name).open("wb") for name in ("stdout", "stderr")}
        self._process = subprocess.Popen(
            self._command(), cwd=ROOT, env=self._environment, **streams
        )
        for stream in streams.values():
            stream.close()

    def programs(self) -> dict[str, int]:
        """Give the process ids of its children by package."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        packages = {}
        for child in map(int, children):
            arguments = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            if arguments[1:2] == ["-m"] and arguments[2] != "stack":  # else it is just forked
                packages[arguments[2]] = child
        return packages

    def interrupt(self) -> int:
        """Press Ctrl-C, and give its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def another(self, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Run a second one to its end; data, memory_port, … are changed, all else is the same."""
        changed = {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
        return subprocess.run(
            self._command(**changed),
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def clear(self) -> None:
        """Leave nothing running."""
        if self.running:
            self.interrupt()

    def _command(self, **changes: str) -> list[str]:
        options = {"--data": self.data, **self._ports, **changes}
        given = [str(word) for option in options.items() for word in option]
        return [sys.executable, "-m", "stack", "up", *self._arguments, *given]


class GatewayProgram(Program):
    """The gateway, which answers HTTP and not gRPC."""

    def __init__(self, agent: str, memory: str, folder: Path, **knobs: str) -> None:
        targets = {"GATEWAY_AGENT_TARGET": agent, "GATEWAY_MEMORY_TARGET": memory}
        super().__init__("gateway", "GATEWAY_LISTEN", targets | knobs, folder)

    def start(self, *arguments: str, within: float = 60.0) -> None:
        """Serve, and return when it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("serve", *arguments),
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        poll(lambda: http_ready(self.address), bool, within=within)


def gone(pid: int) -> bool:
    """Tell whether a process has ended."""
    return not Path(f"/proc/{pid}").exists()


def state(pid: int) -> str:
    """Give a process's state: R, S, T (stopped), …"""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
