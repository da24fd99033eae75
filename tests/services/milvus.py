"""A real Milvus standalone server of our own (PyPI milvus 2.3.5), data in a temporary folder."""

import lzma
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import milvus
from milvus import MilvusServerConfig
from pymilvus import MilvusClient

from tests.services.mariadb import free_port

SESSION_SECONDS = 30
"""Milvus's own default, see Milvus."""

_numbers = count()


class Milvus:
    """A server on a folder, always on the same port: killed, paused and started again by tests.

    session_seconds: how long its parts wait after a kill before they believe that their
    predecessors are gone; a pause that lasts longer ends it. Starting again takes that and 8 s.
    """

    def __init__(
        self, folder: Path, programs: Path, *, session_seconds: int = SESSION_SECONDS
    ) -> None:
        self._folder = folder
        self._programs = programs
        config = MilvusServerConfig(data_dir=str(folder))
        config.set("common.session.ttl", session_seconds)
        _spread_ports(config)
        config.resolve()
        self._etcd = folder / "etcd.yaml"
        self._etcd.write_text(_etcd_config(config.get("etcd_port")))
        self._metrics_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = f"http://127.0.0.1:{config.get('proxy_port')}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, without waiting for it to answer."""
        assert not self.running
        environment = {
            **os.environ,
            "DEPLOY_MODE": "STANDALONE",
            "ETCD_CONFIG_PATH": str(self._etcd),
            "METRICS_PORT": str(self._metrics_port),
            "MILVUS_RUN_DIR": str(self._folder / "run"),
            "LD_LIBRARY_PATH": str(self._programs),
        }
        with (self._folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [self._programs / "milvus", "run", "standalone"],
                cwd=self._folder,
                env=environment,
                stdout=output,
                stderr=output,
            )

    def wait_until_up(self, within: float = 120.0) -> None:
        until = time.monotonic() + within
        while not self._answers():
            if not self.running or time.monotonic() > until:
                message = f"Milvus did not come up, see {self._folder}"
                raise RuntimeError(message)
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill -9 it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End the pause."""
        os.kill(self.pid, signal.SIGCONT)

    def _answers(self) -> bool:
        client: MilvusClient | None = None
        try:
            client = MilvusClient(self.uri, timeout=2.0, dedicated=True)
            client.list_collections(timeout=2.0)
        except Exception:  # noqa: BLE001 — whatever it is, it does not answer yet
            return False
        else:
            return True
        finally:
            if client is not None:
                client.close()


def _etcd_config(port: int) -> str:
    """Without it the etcd inside takes ports 2379 and 2380, and no second server starts."""
    clients, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"
    return (
        f"name: default\n"
        f"listen-client-urls: {clients}\nadvertise-client-urls: {clients}\n"
        f"listen-peer-urls: {peers}\ninitial-advertise-peer-urls: {peers}\n"
        f"initial-cluster: default={peers}\n"
    )


def _spread_ports(config: MilvusServerConfig) -> None:
    """Search each server's free ports in a place of its own: one that is down holds none."""
    offset = 100 * (os.getpid() % 90) + 20 * next(_numbers)
    for key in [key for key in config.configurable_items if key.endswith("_port")]:
        config.set(key, config.get(key) + offset)


@contextmanager
def milvus_server(cache: Path, *, session_seconds: int = SESSION_SECONDS) -> Iterator[Milvus]:
    """Give a server that is not started yet, and kill it at the end; its folder goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="milvus-"))
    try:
        server = Milvus(folder, _programs(cache), session_seconds=session_seconds)
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs(cache: Path) -> Path:
    """Unpack the wheel's programs (18 s), once for all sessions that share a cache folder."""
    unpacked = cache / f"milvus-{milvus.__version__}"
    if unpacked.exists():
        return unpacked
    fresh = Path(tempfile.mkdtemp(dir=cache))
    for packed in Path(milvus.__file__).parent.glob("data/bin/*.lzma"):
        program = fresh / packed.stem
        with lzma.open(packed) as source, program.open("wb") as target:
            shutil.copyfileobj(source, target)
        program.chmod(0o755)
    try:
        fresh.rename(unpacked)
    except OSError:  # another session was first
        shutil.rmtree(fresh)
    return unpacked
