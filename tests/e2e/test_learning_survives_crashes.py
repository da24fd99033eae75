"""A short run of `python -m benchmarks.crashes`."""

from pathlib import Path

import pytest

from tests.e2e.crashes import Stack, crash


@pytest.mark.parametrize("database", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_whatever_is_killed_each_acknowledged_turn_is_learnt_exactly_once(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    knobs = {}
    if database == "mariadb":
        server = request.getfixturevalue("mariadb_server")
        knobs = {"MEMORY_DATABASE_URL": server.url(), "AGENT_DATABASE_URL": server.url()}
    figures = crash(Stack(tmp_path, knobs), rounds=4, seed=2, say=lambda _line: None)
    assert figures.right, figures
