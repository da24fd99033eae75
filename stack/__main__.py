"""Command line of the stack: `memory-stack up`."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from stack.demo import QUESTION, USER, seed
from stack.greeting import greeting
from stack.plan import Addresses, programs
from stack.processes import Processes, StartFailed, Stopped, start_all

OK, FAILED = 0, 1
WATCH_EVERY = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code."""
    options = _parser().parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return up(options, stop)


def up(options: argparse.Namespace, stop: threading.Event) -> int:
    """Start the three services, wait until stop is set, and end them again."""
    data = Path(options.data).resolve()
    addresses = Addresses(
        f"127.0.0.1:{options.memory_port}",
        f"127.0.0.1:{options.agent_port}",
        f"127.0.0.1:{options.gateway_port}",
    )
    processes = Processes(data / "logs", stop)
    try:
        start_all(processes, programs(addresses, data, os.environ), _say)
        if options.demo:
            _say(f'{seed(addresses.memory)} memories of the user "{USER}" are stored')
        _say(greeting(addresses, data, user=USER, question=QUESTION))
        return _watch(processes, stop)
    except Stopped:
        return OK
    except StartFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return FAILED
    finally:
        _say("stopping …")
        processes.stop()


def _watch(processes: Processes, stop: threading.Event) -> int:
    while not stop.wait(WATCH_EVERY):
        ended = processes.first_ended()
        if ended is not None:
            sys.stderr.write(f"{ended.name} ended by itself, see {processes.log(ended)}\n")
            return FAILED
    return OK


def _say(text: str) -> None:
    print(text, flush=True)


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
    command.add_argument("--memory-port", type=int, default=9088)
    command.add_argument("--agent-port", type=int, default=9089)
    command.add_argument("--gateway-port", type=int, default=8080)
    return parser


if __name__ == "__main__":
    sys.exit(main())
