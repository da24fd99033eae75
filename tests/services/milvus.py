"""A real Milvus standalone server of our own (PyPI milvus 2.3.5), data in a temporary folder."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from milvus import MilvusServer, MilvusServerConfig


@dataclass(frozen=True)
class Milvus:
    """A running server; pid may be stopped and continued by a test."""

    uri: str
    pid: int


@contextmanager
def milvus_server() -> Iterator[Milvus]:
    """Start a server (about 18 s the first time) and stop it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="milvus-"))
    server = MilvusServer(MilvusServerConfig(data_dir=str(folder)))
    try:
        server.start()
        yield Milvus(f"http://127.0.0.1:{server.listen_port}", server.server_proc.pid)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
