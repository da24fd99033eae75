"""A MariaDB server of our own, on loopback, with its data in a temporary folder."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql


def free_port() -> int:
    """Give a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class MariaDB:
    """A running server; url() makes a new empty database in it."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self.process = process
        self._databases = 0

    def execute(self, statement: str) -> None:
        with pymysql.connect(host="127.0.0.1", port=self.port, user="root") as connection:
            connection.cursor().execute(statement)
            connection.commit()

    def url(self) -> str:
        self._databases += 1
        name = f"t{os.getpid()}_{self._databases}"
        self.execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{name}"


@contextmanager
def mariadb() -> Iterator[MariaDB]:
    """Start a server and stop it at the end; its data folder goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
    user: str | None = None
    group: int | None = None
    if os.getuid() == 0:  # it refuses to run as root
        user, group = "nobody", pwd.getpwnam("nobody").pw_gid
        shutil.chown(folder, user)
    try:
        subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={folder}/data",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
            ],
            check=True,
            capture_output=True,
            user=user,
            group=group,
        )
        port = free_port()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    "mariadbd",
                    "--no-defaults",
                    f"--datadir={folder}/data",
                    f"--socket={folder}/s.sock",
                    f"--port={port}",
                    "--bind-address=127.0.0.1",
                    f"--pid-file={folder}/pid",
                    "--max-connections=300",
                ],
                stdout=log,
                stderr=log,
                user=user,
                group=group,
            )
        server = MariaDB(port, process)
        try:
            _wait_until_up(server)
            yield server
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_up(server: MariaDB) -> None:
    for _ in range(300):
        try:
            server.execute("SELECT 1")
        except pymysql.err.OperationalError:
            if server.process.poll() is not None:
                raise
            time.sleep(0.1)
        else:
            return
    message = "mariadbd did not come up"
    raise RuntimeError(message)
