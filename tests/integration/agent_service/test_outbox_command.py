"""`agent-service outbox`: what waits, what is parked, and trying it again."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_service.__main__ import main
from agent_service.adapters.sql.outbox import SqlLearnOutbox
from agent_service.app import migrate
from agent_service.app.parts import open_database
from agent_service.settings import AgentSettings
from tests.builders.agent_turns import NOON
from tests.contract.agent_service.agent_stores import sql_stores
from tests.contract.agent_service.test_learn_outbox import claim, ended


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentSettings:
    monkeypatch.setenv("AGENT_DATA_DIR", str(tmp_path))
    return AgentSettings()


@pytest.fixture
def parked(settings: AgentSettings) -> AgentSettings:
    """Two turns of ann and one of bob are parked, another one of ann waits."""
    migrate(settings)
    asyncio.run(_park(settings))
    return settings


async def _park(settings: AgentSettings) -> None:
    database = open_database(settings)
    stores = sql_stores(database)
    for number, user in enumerate(("ann", "ann", "bob")):
        await ended(stores, f"t{number}", user, after=number)
        (one,) = await claim(stores, number)
        await stores.outbox.park(one, error="INVALID_ARGUMENT user_id", now=NOON)
    await ended(stores, "t3", after=3)
    database.close()


def waiting(settings: AgentSettings) -> list[str]:
    """Take what is due and give its names."""

    async def taken() -> list[str]:
        database = open_database(settings)
        outbox = SqlLearnOutbox(database, lambda: "lease")
        found = []
        while claimed := await outbox.claim(
            limit=9, lease=timedelta(seconds=9), now=NOON + timedelta(days=9999)
        ):
            for one in claimed:
                found.append(one.turn.turn_id)
                await outbox.delivered(one, now=NOON)
        database.close()
        return found

    return asyncio.run(taken())


@pytest.mark.usefixtures("parked")
def test_what_is_parked_is_listed_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outbox", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    since = "2026-03-04T12:00:03.123456+00:00"
    assert lines[0] == f"1 pending, the oldest since {since}; 3 parked"
    assert lines[1] == (
        "t0 user=ann conversation=c-t0 since=2026-03-04T12:00:00.123456+00:00 "
        "tries=1 error=INVALID_ARGUMENT user_id"
    )
    assert [line.split()[0] for line in lines[1:]] == ["t0", "t1", "t2"]


@pytest.mark.usefixtures("parked")
def test_what_is_parked_is_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outbox", "list", "--json"]) == 0
    listed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (listed["pending"], listed["parked"]) == (1, 3)
    assert listed["oldest"] == "2026-03-04T12:00:03.123456+00:00"
    assert listed["parked_turns"][2] == {
        "user_id": "bob",
        "conversation_id": "c-t2",
        "turn_id": "t2",
        "attempt": 1,
        "error": "INVALID_ARGUMENT user_id",
        "create_time": "2026-03-04T12:00:02.123456+00:00",
    }


@pytest.mark.usefixtures("settings")
def test_the_outbox_of_an_empty_folder_is_made_and_listed_as_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["outbox", "list"]) == 0
    assert capsys.readouterr().out == "0 pending; 0 parked\n"


def test_one_parked_turn_is_tried_again_before_later_ones(
    parked: AgentSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["outbox", "retry", "t1"]) == 0
    assert capsys.readouterr().out == "1 will be tried again\n"
    assert waiting(parked) == ["t1", "t3"]


def test_all_parked_turns_are_tried_again(
    parked: AgentSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["outbox", "retry", "--all"]) == 0
    assert capsys.readouterr().out == "3 will be tried again\n"
    found = waiting(parked)
    assert [name for name in found if name != "t2"] == ["t0", "t1", "t3"]
    assert "t2" in found


@pytest.mark.usefixtures("parked")
def test_a_turn_that_is_not_parked_is_said_to_be_none_and_others_are_retried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["outbox", "retry", "t3", "t0", "nobody"]) == 1
    said = capsys.readouterr()
    assert said.out == "1 will be tried again\n"
    assert said.err.splitlines() == [
        "agent-service: nobody is not parked",
        "agent-service: t3 is not parked",
    ]


@pytest.mark.parametrize(
    "line", [["outbox"], ["outbox", "retry"], ["outbox", "retry", "--all", "t1"], ["outbox", "x"]]
)
def test_a_wrong_command_line_is_2(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_file_that_is_no_database_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.db").write_text("This is no database. " * 99)
    monkeypatch.setenv("AGENT_DATABASE_URL", f"sqlite:///{tmp_path}/agent.db")
    assert main(["outbox", "list"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
