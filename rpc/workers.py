"""Several processes on one port.

The parent holds the port and starts the workers as fresh processes (spawn), so no gRPC object is
ever forked. A worker that dies is replaced, with a log line; one that dies before it lived
`settle` seconds would only die again, so that ends them all. Workers end when the parent is gone.
"""

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

import structlog

from rpc import listen

log = structlog.get_logger("rpc")
WorkerMain = Callable[[str, int], None]
"""Serves at the given address, with reuse_port, until SIGTERM; also gets its number, from 0."""


@dataclass(frozen=True, slots=True)
class _Worker:
    number: int
    process: BaseProcess
    begun: float


def run_workers(
    n: int, listen_at: str, worker_main: WorkerMain, *, grace: float = 10.0, settle: float = 5.0
) -> int:
    """Run n workers until SIGTERM or SIGINT and give the exit code: 0, or 1 if workers failed.

    worker_main is a function of a module, called in each worker with the address whose port is
    resolved. Workers get SIGTERM and grace + 2 seconds, then SIGKILL. Raises BadListen (unix
    sockets cannot be shared) and ListenFailed.
    """
    with _held(listen_at) as address, _wakeup() as woken:
        context = multiprocessing.get_context("spawn")

        def begin(number: int) -> _Worker:
            process = context.Process(target=_work, args=(worker_main, str(address), number))
            process.start()
            log.info("worker_started", worker=number, pid=process.pid)
            return _Worker(number, process, time.monotonic())

        workers = {number: begin(number) for number in range(n)}
        failed = False
        while not failed and not woken():
            wait([worker.process.sentinel for worker in workers.values()], timeout=0.2)
            for worker in [w for w in workers.values() if not w.process.is_alive()]:
                if woken():
                    break
                lived = time.monotonic() - worker.begun
                log.error(
                    "worker_died",
                    worker=worker.number,
                    exit_code=worker.process.exitcode,
                    seconds=round(lived, 1),
                )
                if lived < settle:
                    failed = True
                    break
                workers[worker.number] = begin(worker.number)
        killed = _end([worker.process for worker in workers.values()], grace + 2)
        return int(failed or killed)


def _end(processes: list[BaseProcess], seconds: float) -> bool:
    """Ask them to end, kill those that have not after so many seconds; True if there were some."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
    late = [process for process in processes if process.is_alive()]
    for process in late:
        log.error("worker_killed", pid=process.pid)
        process.kill()
        process.join()
    return bool(late)


def _work(worker_main: WorkerMain, address: str, number: int) -> None:
    threading.Thread(target=_follow_parent, daemon=True).start()
    worker_main(address, number)


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _wakeup() -> Iterator[Callable[[], bool]]:
    """Take SIGTERM and SIGINT; inside, the given function says whether one has come."""
    came = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: came.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield came.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _held(listen_at: str) -> Iterator[listen.Tcp]:
    """Hold a port without listening on it, so that only our workers get it.

    It is first bound without SO_REUSEPORT, which fails if any other process has it: with it, a
    second group of workers would take half of the first one's calls.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        message = "several workers need SO_REUSEPORT, which this system lacks"
        raise listen.ListenFailed(message)
    address = listen.parse(listen_at)
    if not isinstance(address, listen.Tcp):
        message = f"workers share a TCP port; {address} cannot be shared"
        raise listen.BadListen(message)
    family, kind, protocol, _, target = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM
    )[0]
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
            target = probe.getsockname()
        holder = socket.socket(family, kind, protocol)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(target)
    except OSError as error:
        message = f"cannot listen on {address}: {error.strerror}"
        raise listen.ListenFailed(message) from None
    with holder:
        yield listen.Tcp(address.host, int(target[1]))
