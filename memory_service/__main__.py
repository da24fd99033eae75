"""Command line of the memory service.

Exit codes: 0 done, 1 failed, 2 the command line or a setting is not acceptable, 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from memory_service.settings import Settings
from rpc.knobs import BAD_SETTINGS, count, read, show
from rpc.lines import interrupted

DONE = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    options = _parser().parse_args(arguments)
    # Read by numpy when it is first imported: each request is one small product, and threads of
    # BLAS would take the cores from other requests.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    settings = read(Settings, "memory-service")
    if settings is None:
        return BAD_SETTINGS
    if options.command == "config":
        show(settings, as_json=options.json)
        return DONE
    try:
        from memory_service import commands  # noqa: PLC0415 — numpy must not be imported before

        return commands.run(options, settings)
    except KeyboardInterrupt:
        return interrupted("memory-service")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memory-service",
        description="Keeps durable statements about users and finds them again, over gRPC.",
        epilog="All settings are environment variables; `config` shows them.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    serve = commands.add_parser("serve", help="answer RPCs until SIGTERM")
    serve.add_argument("--workers", type=count, help="processes on one port")
    commands.add_parser("worker", help="tell the index what changed, until SIGTERM")
    for name, text in (
        ("migrate", "bring the database to the current schema"),
        ("reindex", "fill the index from the database, for a new embedder or after a loss"),
        ("config", "show all settings as they are in force, secrets hidden"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--json", action="store_true", help="print JSON")
    _add_upkeep(commands)
    return parser


def _add_upkeep(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add what the worker does by itself, and what moves a user's memories."""
    sweep = commands.add_parser("sweep", help="delete what has expired, archive duplicates")
    sweep.add_argument("what", nargs="?", choices=("expired", "duplicates"), help="only these")
    sweep.add_argument("--dry-run", action="store_true", help="only tell which are duplicates")
    sweep.add_argument("--user", help="only duplicates of this user")
    commands.add_parser("purge", help="remove for good what was deleted long ago")
    reconcile = commands.add_parser(
        "reconcile", help="compare the database with the index, and mend the index"
    )
    reconcile.add_argument("--user", help="only this user")
    drop = commands.add_parser(
        "drop-collection", help="drop collections of embedders that are no longer used"
    )
    drop.add_argument("name", nargs="*", help="which; without one they are listed")
    drop.add_argument("--old", action="store_true", help="all but the one in use")
    export = commands.add_parser("export", help="write a user's memories to stdout as JSON lines")
    export.add_argument("--user", required=True)
    imports = commands.add_parser("import", help="store memories from stdin, as export wrote them")
    imports.add_argument("--user", required=True)
    imports.add_argument("--request-id", default="", help="the same one goes on where it broke off")
    for command in (sweep, commands.choices["purge"], reconcile, drop, imports):
        command.add_argument("--json", action="store_true", help="print JSON")


if __name__ == "__main__":
    sys.exit(main())
