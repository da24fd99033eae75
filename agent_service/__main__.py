"""Command line of the agent service.

Exit codes: 0 done, 1 failed, 2 the command line or a setting is not acceptable.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from pydantic import ValidationError

from agent_service import commands
from agent_service.settings import AgentSettings
from rpc.knobs import problems, unknown_variables

BAD_SETTINGS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    options = _parser().parse_args(arguments)
    try:
        settings = AgentSettings()
    except ValidationError as error:
        print(*problems(AgentSettings, error), sep="\n", file=sys.stderr)
        return BAD_SETTINGS
    for name in unknown_variables(AgentSettings, os.environ):
        print(f"warning: {name} is no setting of the agent service", file=sys.stderr)
    return commands.run(options, settings)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent-service",
        description="Holds conversations with memory, over gRPC.",
        epilog="All settings are environment variables; `config` shows them.",
    )
    names = parser.add_subparsers(dest="command", required=True, metavar="command")
    serve = names.add_parser("serve", help="answer RPCs until SIGTERM")
    serve.add_argument("--workers", type=_count, help="processes on one port")
    for name, text in (
        ("migrate", "bring the database to the current schema"),
        ("config", "show all settings as they are in force, secrets hidden"),
    ):
        command = names.add_parser(name, help=text)
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        message = "at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


if __name__ == "__main__":
    sys.exit(main())
