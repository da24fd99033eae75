"""milvus-lite as a server process of its own on loopback, which a test may stop and continue."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.mariadb import free_port

_CODE = """
import sys
from milvus_lite.adapter.grpc.server import run_server
run_server(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]))
"""


@contextmanager
def milvus_lite_process(folder: Path, port: int | None = None) -> Iterator[tuple[str, int]]:
    """Give its address and process id; killed at the end."""
    port = port or free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE, str(folder), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _answers(port):
            if process.poll() is not None:
                message = "milvus-lite did not start"
                raise RuntimeError(message)
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
