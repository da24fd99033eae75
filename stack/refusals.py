"""What is looked at before anything starts: the data folder and the ports."""

import fcntl
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stack.failures import StartFailed
from stack.plan import Program

LOCK = "memory-stack.lock"


@contextmanager
def held(data: Path) -> Iterator[None]:
    """Hold the data folder, made if there is none; the system lets go of it with the process.

    Raises StartFailed if another stack holds it, or if it cannot be written.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / LOCK).open("ab")
    except OSError as error:
        message = f"{data} cannot hold the data: {error.strerror}. Choose another with --data."
        raise StartFailed(message) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = (
                f"{data} is in use by another memory-stack. "
                "Stop that one, or choose another folder with --data, and other ports."
            )
            raise StartFailed(message) from None
        yield


def refuse_taken(programs: Sequence[Program]) -> None:
    """Raise StartFailed if something listens where a program shall."""
    for program in programs:
        host, _, port = program.address.rpartition(":")
        with socket.socket() as probe:
            probe.settimeout(1.0)
            if probe.connect_ex((host, int(port))) == 0:
                message = (
                    f"{program.address} is taken, so {program.name} cannot listen there. "
                    f"Stop what runs there, or choose another port with --{program.name}-port."
                )
                raise StartFailed(message)
