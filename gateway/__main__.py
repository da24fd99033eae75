"""Command line of the gateway.

Exit codes: 0 done, 1 failed, 2 the command line or a setting is not acceptable, 130 interrupted.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway import commands
from gateway.settings import GatewaySettings
from rpc.knobs import BAD_SETTINGS, read
from rpc.lines import interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    options = _parser().parse_args(arguments)
    settings = read(GatewaySettings, "gateway")
    if settings is None:
        return BAD_SETTINGS
    try:
        return commands.run(options, settings)
    except KeyboardInterrupt:
        return interrupted("gateway")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gateway",
        description="A thin HTTP and SSE front of the agent and the memory service.",
        epilog="All settings are environment variables; `config` shows them.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    commands.add_parser("serve", help="answer HTTP until SIGTERM")
    _add_keys(commands.add_parser("keys", help="create, revoke and list API keys"))
    config = commands.add_parser("config", help="show all settings as they are, secrets hidden")
    config.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", type=Path, help="the file (default: GATEWAY_API_KEYS_FILE)")
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    create = actions.add_parser("create", help="make a key and print it, once")
    create.add_argument("--user", required=True, help="whose requests it makes")
    create.add_argument("--name", default="", help="what it is for")
    revoke = actions.add_parser("revoke", help="make a key invalid, also in a running gateway")
    revoke.add_argument("key_id", help="as `keys list` shows it")
    listed = actions.add_parser("list", help="show keys, without their secrets")
    listed.add_argument("--json", action="store_true", help="print JSON")


if __name__ == "__main__":
    sys.exit(main())
