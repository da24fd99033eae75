"""sweep, purge, reconcile, drop-collection, export and import, as people run them."""

import io
import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memory_service.__main__ import main

DAY = 86_400

pytestmark = pytest.mark.usefixtures("environment")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("MEMORY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("MEMORY_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MEMORY_EMBEDDER", "hash")


class Shell:
    """Runs commands in this process; gives what they print."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.errors = ""

    def run(self, *arguments: str, lines: Sequence[str] = (), code: int = 0) -> str:
        fed = io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode()))
        self._monkeypatch.setattr("sys.stdin", fed)
        assert main(arguments) == code
        shown = self._capsys.readouterr()
        self.errors = shown.err
        return shown.out

    def json(self, *arguments: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.run(*arguments, "--json", **more).splitlines()[-1])
        return answer

    def exported(self, user: str = "u1") -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run("export", "--user", user).splitlines()]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def line(content: str, **fields: object) -> str:
    return json.dumps(
        {"memory_type": "MEMORY_TYPE_FACT", "content": content, **fields}, ensure_ascii=False
    )


def test_what_is_exported_can_be_imported_again_and_for_another_user(shell: Shell) -> None:
    lines = [line("喜欢茶 🙂", memory_id="m1"), line("Likes cake.", memory_id="m2")]
    counts = shell.json("import", "--user", "u1", lines=lines)
    assert counts == {"created": 2, "refreshed": 0, "failed": 0}
    first = shell.exported()
    assert [one["content"] for one in first] == ["喜欢茶 🙂", "Likes cake."]
    assert "2 exported" in shell.errors
    again = [json.dumps(one) for one in first]
    assert shell.json("import", "--user", "u1", lines=again)["refreshed"] == 2
    assert shell.exported() == first
    copied = shell.json("import", "--user", "u2", lines=again)
    assert copied["created"] == 2
    assert [one["user_id"] for one in shell.exported("u2")] == ["u2", "u2"]


def test_an_import_says_which_lines_it_refused_and_stores_the_others(shell: Shell) -> None:
    lines = [line("Likes tea."), "no json", line(""), line("Likes cake.", is_new_field=1)]
    said = shell.run("import", "--user", "u1", "--request-id", "r", lines=lines, code=1)
    assert said == "2 created, 0 refreshed, 2 failed\n"
    assert "line 2: " in shell.errors
    assert "line 3: " in shell.errors
    assert said == shell.run("import", "--user", "u1", "--request-id", "r", lines=lines, code=1)
    assert len(shell.exported()) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "--user", ""),
        ("import", "--user", "a\nb"),
        ("sweep", "--user", ""),
        ("sweep", "duplicates", "--user", ""),
        ("reconcile", "--user", ""),
    ],
)
def test_a_user_id_that_is_none_ends_with_code_2(shell: Shell, arguments: tuple[str, ...]) -> None:
    shell.run(*arguments, code=2)
    assert "user_id" in shell.errors
    assert len(shell.errors.splitlines()) == 1


@pytest.mark.parametrize("option", [("--user", "ann"), ("--dry-run",)])
def test_a_sweep_of_what_expired_refuses_options_that_mean_nothing(
    shell: Shell, option: tuple[str, ...]
) -> None:
    shell.run("sweep", "expired", *option, code=2)
    (said,) = shell.errors.splitlines()
    assert option[0] in said


def test_upkeep_of_an_empty_database_counts_zeros(shell: Shell) -> None:
    zeros = {"users": 0, "memories": 0, "duplicates": 0, "archived": 0}
    assert shell.json("sweep", "duplicates") == zeros
    said = "0 users, 0 memories, 0 duplicates, 0 archived\n"
    assert shell.run("sweep", "duplicates") == said
    assert shell.run("sweep", "duplicates", "--dry-run") == said


def test_a_request_id_of_another_import_is_refused_in_one_line(shell: Shell) -> None:
    again = ("import", "--user", "u1", "--request-id", "r1")
    shell.run(*again, lines=[line("Likes tea.")])
    shell.run(*again, lines=[line("Likes cake.")], code=1)
    assert shell.errors == (
        "memory-service: the request_id was used for another request; nothing was stored\n"
    )
    assert [one["content"] for one in shell.exported()] == ["Likes tea."]


def test_a_sweep_deletes_what_expired_and_archives_duplicates(shell: Shell) -> None:
    lines = [
        line("Expired.", memory_id="m1", expire_time="2020-01-01T00:00:00Z"),
        line("Likes tea.", memory_id="m2", confidence=0.9),
        line("Likes tea", memory_id="m3", confidence=0.1),
    ]
    shell.run("import", "--user", "u1", lines=lines)
    dry = shell.run("sweep", "--dry-run", "--json").splitlines()
    assert json.loads(dry[0]) == {"user_id": "u1", "memory_id": "m3", "kept": "m2"}
    assert json.loads(dry[-1])["archived"] == 0
    assert "u1: m3 says what m2 says" in shell.run("sweep", "duplicates", "--dry-run")
    assert shell.json("sweep", "duplicates", "--user", "u9")["duplicates"] == 0
    assert {one["status"] for one in shell.exported()} == {"MEMORY_STATUS_ACTIVE"}
    assert shell.run("sweep", "expired") == "1 expired, 0 retention\n"
    assert shell.json("sweep") == {
        "expired": 0,
        "retention": 0,
        "users": 1,
        "memories": 2,
        "duplicates": 1,
        "archived": 1,
    }
    assert [one["status"].removeprefix("MEMORY_STATUS_") for one in shell.exported()] == [
        "DELETED",
        "ACTIVE",
        "ARCHIVED",
    ]


def test_a_purge_removes_what_was_deleted_long_ago_and_its_words(
    shell: Shell, tmp_path: Path
) -> None:
    old = {"status": "MEMORY_STATUS_DELETED", "update_time": "2020-01-01T00:00:00Z"}
    shell.run("import", "--user", "u1", lines=[line("The secret.", **old), line("Likes tea.")])
    assert shell.json("purge")["memories"] == 1
    assert [one["content"] for one in shell.exported()] == ["Likes tea."]
    with sqlite3.connect(tmp_path / "memory.db") as database:
        rows = database.execute("SELECT operation, actor, after FROM memory_history").fetchall()
        dump = "\n".join(database.iterdump())
    assert ("erase", "operator", None) in rows
    assert "secret" not in dump


def test_reconcile_mends_an_index_that_differs_both_ways(shell: Shell, tmp_path: Path) -> None:
    lines = [line(f"Fact {number}.", memory_id=f"m{number}") for number in range(3)]
    shell.run("import", "--user", "u1", lines=lines)
    shell.run("reindex")
    nothing = {"users": 1, "missing": 0, "orphaned": 0, "waiting": 0}
    assert shell.json("reconcile") == nothing
    with sqlite3.connect(tmp_path / "memory.db") as database:
        database.execute("DELETE FROM memory_index_outbox")
        # As if a backup of before were restored: one memory less, one more.
        database.execute("UPDATE memories SET memory_id = 'm9' WHERE memory_id = 'm2'")
    drift = {"users": 1, "missing": 1, "orphaned": 1, "waiting": 0}
    assert shell.json("reconcile", "--user", "u1") == drift
    assert shell.json("reconcile") == nothing
    assert shell.run("reconcile") == "1 users, 0 missing, 0 orphaned, 0 waiting\n"


def test_an_index_that_is_being_filled_is_not_compared(shell: Shell) -> None:
    shell.run("import", "--user", "u1", lines=[line("Likes tea.")])
    shell.run("reindex")
    shell._monkeypatch.setenv("MEMORY_EMBEDDER_DIMS", "64")
    shell.run("reconcile", code=1)
    assert "reindexing" in shell.errors


def test_old_collections_are_listed_and_dropped_by_name_once_the_new_one_is_complete(
    shell: Shell,
) -> None:
    shell.run("import", "--user", "u1", lines=[line("Likes tea.")])
    shell.run("reindex")
    shell._monkeypatch.setenv("MEMORY_EMBEDDER_DIMS", "64")
    old, new = "memories_hash_1_512", "memories_hash_1_64"
    assert shell.json("drop-collection") == {"current": new, "old": [old], "dropped": []}
    shell.run("drop-collection", "--old", code=1)
    assert "is not complete" in shell.errors
    shell.run("reindex")
    shell.run("drop-collection", new, code=1)
    assert f"no old collection of ours: {new}" in shell.errors
    said = shell.run("drop-collection", old)
    assert said == f"current: {new}; old: {old}; dropped: {old}\n"
    assert shell.run("drop-collection", "--old") == f"current: {new}; old: none; dropped: none\n"


@pytest.mark.parametrize("command", ["reconcile", "drop-collection"])
def test_without_an_index_there_is_nothing_to_do_there(shell: Shell, command: str) -> None:
    shell._monkeypatch.setenv("MEMORY_MILVUS_URI", "off")
    shell.run(command, code=2)
    assert "there is no index" in shell.errors
