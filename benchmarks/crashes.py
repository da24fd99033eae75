"""Kill -9 at random, again and again: what was acknowledged is learnt exactly once.

    python -m benchmarks.crashes                                   100 rounds on each database
    python -m benchmarks.crashes --rounds 5 --database sqlite --json

Real processes of the agent and the memory service, six people who chat, and one of the two services
killed at a random moment in each round. Afterwards both databases are read by SQL, and the index is
compared with them. Needs mariadb-server for that database. Exit code 1 if anything was lost,
doubled or stuck.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import table
from tests.e2e.crashes import Figures, Stack, crash
from tests.services.mariadb import mariadb

DATABASES = ("sqlite", "mariadb")


def main() -> int:
    """Run the command and give its exit code."""
    options = _options()
    done: dict[str, Figures] = {}
    for database in options.database or DATABASES:
        with tempfile.TemporaryDirectory() as folder, _knobs(database) as knobs:
            stack = Stack(Path(folder), knobs)
            done[database] = crash(stack, rounds=options.rounds, seed=options.seed, say=_say)
    if options.json:
        print(json.dumps({name: asdict(figures) for name, figures in done.items()}))
    else:
        rows = [[name, *_values(figures)] for name, figures in done.items()]
        print(table(["database", *asdict(Figures())], rows))
    return 0 if all(figures.right for figures in done.values()) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.crashes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rounds", type=int, default=100, help="kills on each (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments (default 1)")
    parser.add_argument("--database", choices=DATABASES, action="append", help="default: both")
    parser.add_argument("--json", action="store_true", help="figures as one line of JSON")
    return parser.parse_args()


@contextmanager
def _knobs(database: str) -> Iterator[Mapping[str, str]]:
    if database == "sqlite":
        yield {}
        return
    with mariadb() as server:
        yield {"MEMORY_DATABASE_URL": server.url(), "AGENT_DATABASE_URL": server.url()}


def _values(figures: Figures) -> list[object]:
    return [sum(v.values()) if isinstance(v, dict) else v for v in asdict(figures).values()]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
