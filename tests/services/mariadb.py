"""A MariaDB server of our own, on loopback, with its data in a temporary folder."""

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pymysql


def free_port() -> int:
    """Give a port that was free a moment ago, and that no outgoing connection is given."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class MariaDB:
    """A server on a folder, always on the same port; url() makes a new empty database in it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "log"
        self._folder = folder
        self._owner = _owner()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def install(self) -> None:
        """Make its first data, 4 s."""
        subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={self._folder}/data",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
                *self._owner,
            ],
            check=True,
            capture_output=True,
        )

    def start(self) -> None:
        """Start it, and return when it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "mariadbd",
                    "--no-defaults",
                    f"--datadir={self._folder}/data",
                    f"--socket={self._folder}/s.sock",
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    f"--pid-file={self._folder}/pid",
                    "--max-connections=300",
                    *self._owner,
                ],
                stdout=log,
                stderr=log,
            )
        _wait_until_up(self)

    def stop(self) -> None:
        """Ask it to end, and return when it has."""
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """Kill -9 it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def execute(self, statement: str) -> Any:
        """Run a statement as root, and give its rows."""
        with pymysql.connect(host="127.0.0.1", port=self.port, user="root") as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            connection.commit()
            return cursor.fetchall()

    def url(self) -> str:
        self._databases += 1
        name = f"t{os.getpid()}_{self._databases}"
        self.execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{name}"


@contextmanager
def mariadb() -> Iterator[MariaDB]:
    """Start a server and kill it at the end; its data folder goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
    try:
        if _owner():
            shutil.chown(folder, "nobody")
        server = MariaDB(folder)
        try:
            server.install()
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner() -> list[str]:
    """Say who runs it: it refuses to run as root, and changes the user by itself.

    With Popen's own `user` Python would fork, where it otherwise calls vfork; gRPC hooks into forks
    and now and then crashes the child of a process that has calls under way.
    """
    return ["--user=nobody"] if os.getuid() == 0 else []


def _wait_until_up(server: MariaDB) -> None:
    for _ in range(300):
        try:
            server.execute("SELECT 1")
        except pymysql.err.OperationalError:
            if server.process.poll() is not None:
                break
            time.sleep(0.1)
        else:
            return
    message = f"mariadbd did not come up:\n{server.log.read_text()[-3000:]}"
    raise RuntimeError(message)
