"""Command line of the stack: `memory-stack up`."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from stack.demo import QUESTIONS, USER, seed
from stack.failures import StartFailed, Stopped
from stack.greeting import Secrets, greeting
from stack.plan import Addresses, programs
from stack.processes import Processes
from stack.refusals import held, refuse_taken

OK, FAILED = 0, 1
WATCH_EVERY = 0.5
HIGHEST_PORT = 65535


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code."""
    options = _parser().parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return up(options, stop)


def up(options: argparse.Namespace, stop: threading.Event) -> int:
    """Start the three services, wait until stop is set, and end them again.

    What goes wrong is one line on stderr.
    """
    data = Path(options.data).resolve()
    try:
        with held(data):
            _run(options, data, stop)
    except Stopped:
        return OK
    except StartFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return FAILED
    return OK


def _run(options: argparse.Namespace, data: Path, stop: threading.Event) -> None:
    addresses = Addresses(
        f"127.0.0.1:{options.memory_port}",
        f"127.0.0.1:{options.agent_port}",
        f"127.0.0.1:{options.gateway_port}",
    )
    planned = programs(addresses, data, os.environ)
    refuse_taken(planned)
    processes = Processes(data / "logs", stop)
    try:
        _say("starting memory, agent and gateway …")
        processes.start(planned)
        if options.demo:
            count = seed(addresses.memory, token=os.environ.get("MEMORY_SERVICE_TOKEN", ""))
            _say(f'the user "{USER}" has {count} memories')
        secrets = Secrets.of(os.environ)
        _say(greeting(addresses, data, user=USER, questions=QUESTIONS, secrets=secrets))
        _watch(processes, stop)
    finally:
        _say("stopping …")
        processes.stop()


def _watch(processes: Processes, stop: threading.Event) -> None:
    """Return when stop is set. Raises StartFailed when a program ends by itself."""
    while not stop.wait(WATCH_EVERY):
        if ended := processes.what_ended():
            raise StartFailed(ended)


def _say(text: str) -> None:
    print(text, flush=True)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= HIGHEST_PORT):
        message = f"{text!r} is no port: 1 to {HIGHEST_PORT}"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memory-stack",
        description="Runs memory, agent and gateway on this machine; without settings on SQLite "
        "and milvus-lite, with a built-in embedder and a stand-in for the model.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("up", help="start the three services; Ctrl-C stops them")
    command.add_argument("--demo", action="store_true", help="store a small bilingual user")
    command.add_argument("--data", default="data", help="folder for all data (default: ./data)")
    command.add_argument("--memory-port", type=_port, default=9088)
    command.add_argument("--agent-port", type=_port, default=9089)
    command.add_argument("--gateway-port", type=_port, default=8080)
    return parser


if __name__ == "__main__":
    sys.exit(main())
