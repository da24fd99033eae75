"""A memory service of the benchmark's own: a process on loopback, its data in a folder given."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import grpc

from memory_service.v1 import memory_pb2_grpc
from rpc.probe import serving

CLOSED_PORT = "http://127.0.0.1:1"
"""Nothing listens there: what points at it is down from the start."""


def free_port() -> int:
    """Give a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def memory_service(
    data: Path, settings: Mapping[str, str] | None = None
) -> Iterator[memory_pb2_grpc.MemoryServiceStub]:
    """Start a service with those settings, give a stub of it, and stop it at the end."""
    address = f"127.0.0.1:{free_port()}"
    own = {"MEMORY_LISTEN": address, "MEMORY_DATA_DIR": str(data), "MEMORY_METRICS_LISTEN": ""}
    environment = {**os.environ, **own, **(settings or {})}
    log = data / "service.log"
    data.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "memory_service", "serve"],
            env=environment,
            stdout=sink,
            stderr=sink,
        )
    try:
        _wait(process, address, log)
        with grpc.insecure_channel(address) as channel:
            yield memory_pb2_grpc.MemoryServiceStub(channel)
    finally:
        process.terminate()
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    until = time.monotonic() + 120
    while not serving(address):
        if process.poll() is not None or time.monotonic() > until:
            sys.exit(f"the memory service did not start, see {log}\n{log.read_text()[-2000:]}")
        time.sleep(0.1)
