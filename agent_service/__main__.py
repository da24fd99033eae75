"""Command line of the agent service.

Exit codes: 0 done, 1 failed, 2 the command line or a setting is not acceptable, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from agent_service import commands
from agent_service.settings import AgentSettings
from rpc.knobs import BAD_SETTINGS, count, read
from rpc.lines import interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    options = _parser().parse_args(arguments)
    settings = read(AgentSettings, "agent-service")
    if settings is None:
        return BAD_SETTINGS
    try:
        return commands.run(options, settings)
    except KeyboardInterrupt:
        return interrupted("agent-service")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent-service",
        description="Holds conversations with memory, over gRPC.",
        epilog="All settings are environment variables; `config` shows them.",
    )
    names = parser.add_subparsers(dest="command", required=True, metavar="command")
    serve = names.add_parser("serve", help="answer RPCs until SIGTERM")
    serve.add_argument("--workers", type=count, help="processes on one port")
    names.add_parser("relay", help="deliver turns to learn from until SIGTERM, and nothing else")
    for name, text in (
        ("migrate", "bring the database to the current schema"),
        ("config", "show all settings as they are in force, secrets hidden"),
    ):
        command = names.add_parser(name, help=text)
        command.add_argument("--json", action="store_true", help="print JSON")
    _add_outbox(names)
    return parser


def _add_outbox(names: Any) -> None:
    outbox = names.add_parser("outbox", help="turns that memory was not told, or refused")
    actions = outbox.add_subparsers(dest="action", required=True, metavar="action")
    listed = actions.add_parser(
        "list", help="count those that wait and show those that are parked, the oldest first"
    )
    listed.add_argument("--json", action="store_true", help="print JSON")
    retry = actions.add_parser("retry", help="let parked turns be tried again, tries at 0")
    which = retry.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="all that are parked")
    which.add_argument("turn_ids", nargs="*", default=[], metavar="turn_id", help="these turns")


if __name__ == "__main__":
    sys.exit(main())
