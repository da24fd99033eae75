"""Command line of the memory service.

Exit codes: 0 done, 1 failed, 2 the command line or a setting is not acceptable.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from pydantic import ValidationError

from memory_service.settings import PREFIX, Settings, unknown_variables

DONE, BAD_SETTINGS = 0, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    options = _parser().parse_args(arguments)
    # Read by numpy when it is first imported: each request is one small product, and threads of
    # BLAS would take the cores from other requests.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        settings = Settings()
    except ValidationError as error:
        for problem in error.errors():
            name = "_".join(str(part) for part in problem["loc"]).upper()
            _say(f"{PREFIX + name if name else 'settings'}: {problem['msg']}")
        return BAD_SETTINGS
    for name in unknown_variables():
        _say(f"warning: {name} is no setting of the memory service")
    if options.command == "config":
        _show(settings, as_json=options.json)
        return DONE
    from memory_service import commands  # noqa: PLC0415 — numpy must not be imported before this

    return commands.run(options, settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memory-service",
        description="Keeps durable statements about users and finds them again, over gRPC.",
        epilog="All settings are environment variables; `config` shows them.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    serve = commands.add_parser("serve", help="answer RPCs until SIGTERM")
    serve.add_argument("--workers", type=_count, help="processes on one port")
    commands.add_parser("worker", help="tell the index what changed, until SIGTERM")
    for name, text in (
        ("migrate", "bring the database to the current schema"),
        ("reindex", "fill the index from the database, for a new embedder or after a loss"),
        ("config", "show all settings as they are in force, secrets hidden"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        message = "at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def _show(settings: Settings, *, as_json: bool) -> None:
    shown = settings.shown()
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    for name, knob in shown.items():
        print(f"# {knob['description']}\n{name}={_plain(knob['value'])}\n")


def _plain(value: object) -> str:
    """Give a value as the environment would say it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
