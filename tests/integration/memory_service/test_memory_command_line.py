"""The commands as people start them: processes with an environment."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from memory_service.__main__ import main
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc
from tests.services.mariadb import MariaDB

ANNOUNCED = "listening on "


def environment(folder: Path, **variables: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    return ours | {
        "MEMORY_DATA_DIR": str(folder),
        "MEMORY_EMBEDDER": "hash",
        "MEMORY_LISTEN": "127.0.0.1:0",
        **variables,
    }


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memory_service", *arguments],
        env=environment(folder, **variables),
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def serving(folder: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `serve` and give the process and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "memory_service", "serve"],
        env=environment(folder, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(ANNOUNCED)
        yield process, line.removeprefix(ANNOUNCED).strip()
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def create(address: str, content: str) -> pb.CreateMemoryResponse:
    with grpc.insecure_channel(address) as channel:
        return memory_pb2_grpc.MemoryServiceStub(channel).CreateMemory(
            pb.CreateMemoryRequest(
                user_id="u1",
                request_id=content,
                memory=pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content=content),
            ),
            wait_for_ready=True,
            timeout=60,
        )


def test_serve_migrates_answers_and_ends_at_sigterm_and_reindex_fills_the_index(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, MEMORY_WORKER="off") as (process, address):
        assert create(address, "Likes tea.").created
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    done = run(tmp_path, "reindex", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1]) | {"after": ""} == {
        "done": 1,
        "total": 1,
        "unusable": 0,
        "after": "",
        "ready": True,
    }
    with serving(tmp_path) as (_, address):
        assert not create(address, "likes TEA.").created


def test_an_address_that_is_no_database_of_ours_ends_serve_with_code_2(tmp_path: Path) -> None:
    done = run(tmp_path, "serve", MEMORY_DATABASE_URL="postgresql://ann:hush@h/d")
    assert done.returncode == 2
    assert "MEMORY_DATABASE_URL: " in done.stderr
    assert "hush" not in done.stderr
    assert "hush" not in done.stderr


@pytest.fixture
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("MEMORY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("MEMORY_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MEMORY_EMBEDDER", "hash")


@pytest.mark.usefixtures("_environment")
@pytest.mark.parametrize(
    ("arguments", "variables", "text"),
    [
        (["serve", "--workers", "2"], {}, "SQLite serves one process"),
        (
            ["serve", "--workers", "2"],
            {"MEMORY_DATABASE_URL": "mysql+pymysql://h/d"},
            "an embedded Milvus serves one process",
        ),
        (["serve"], {"MEMORY_LISTEN": "0.0.0.0:0"}, "without a service token"),
        (["serve"], {"MEMORY_LISTEN": "nowhere"}, "is not an address to listen on"),
        (["serve"], {"MEMORY_BUDGET_FACT": "201"}, "MEMORY_BUDGET_FACT: "),
        (["serve"], {"MEMORY_EMBEDDER": "openai"}, "MEMORY_EMBEDDER_MODEL"),
        (["reindex"], {"MEMORY_MILVUS_URI": "off"}, "there is no index to fill"),
    ],
)
def test_settings_that_cannot_be_followed_end_with_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    variables: dict[str, str],
    text: str,
    tmp_path: Path,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(arguments) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.parametrize("arguments", [[], ["serve", "--workers", "0"], ["nonsense"]])
def test_a_command_line_that_is_none_ends_with_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "memory-service" in capsys.readouterr().err


@pytest.mark.usefixtures("_environment")
def test_migrate_says_the_version_and_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"]
    assert main(["migrate"]) == 0
    assert "the schema is at" in capsys.readouterr().out


@pytest.mark.usefixtures("_environment")
def test_an_address_that_is_taken_ends_serve_with_one_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("MEMORY_LISTEN", address)
        monkeypatch.setenv("MEMORY_MILVUS_URI", "off")
        assert main(["serve"]) == 1
    said = [line for line in capfd.readouterr().err.splitlines() if "memory-service: " in line]
    assert len(said) == 1
    assert said[0].startswith(f"memory-service: cannot listen on {address}: ")


@pytest.mark.usefixtures("_environment")
def test_a_database_that_does_not_answer_ends_migrate_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", "mysql+pymysql://ann:hush@127.0.0.1:1/memory")
    assert main(["migrate"]) == 1
    said = capsys.readouterr().err
    # What other tests left running in this process may log beside it.
    (line,) = [line for line in said.splitlines() if line.startswith("memory-service: ")]
    assert line.startswith("memory-service: the database does not do it: ")
    assert "Traceback" not in said
    assert "hush" not in said


@pytest.mark.parametrize("command", ["migrate", "reindex"])
def test_ctrl_c_ends_a_command_with_one_line_and_code_130(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        url = f"mysql+pymysql://ann@{address}/memory?connect_timeout=1"
        process = subprocess.Popen(
            [sys.executable, "-m", "memory_service", command],
            env=environment(
                tmp_path, MEMORY_DATABASE_URL=url, MEMORY_MILVUS_URI="http://127.0.0.1:1"
            ),
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = silent.accept()
        process.send_signal(signal.SIGINT)  # while it waits for a database that says nothing
        connection.close()  # or the thread that waits would hold up the end
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "memory-service: interrupted"
    assert "Traceback" not in said


@pytest.mark.usefixtures("_environment")
def test_reindex_fills_a_new_folder_with_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reindex"]) == 0
    assert capsys.readouterr().out == "0 of 0 memories: ready\n"


@pytest.mark.mariadb
@pytest.mark.usefixtures("_environment")
def test_reindex_of_a_database_without_the_schema_says_what_to_run(
    mariadb_server: MariaDB, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_DATABASE_URL", mariadb_server.url())
    assert main(["reindex"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    said = [line for line in captured.err.splitlines() if line.startswith("memory-service: ")]
    assert said == ["memory-service: the schema is not current: run `memory-service migrate` first"]


@pytest.mark.usefixtures("_environment")
def test_config_shows_all_knobs_without_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_SERVICE_TOKEN", "hush")
    monkeypatch.setenv("MEMORY_TYPO", "1")
    assert main(["config", "--json"]) == 0
    shown = capsys.readouterr()
    knobs = json.loads(shown.out)
    assert knobs["MEMORY_EMBEDDER"]["value"] == "hash"
    assert knobs["MEMORY_RANK_RELEVANCE_WEIGHT"]["default"] == 4.0
    assert "hush" not in shown.out
    assert "MEMORY_TYPO is no setting" in shown.err
    assert main(["config"]) == 0
    assert "MEMORY_WORKER=on\n" in capsys.readouterr().out


def test_a_worker_runs_until_sigterm(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "memory_service", "worker"],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "index_open" in line:
            break
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.stderr.close()
