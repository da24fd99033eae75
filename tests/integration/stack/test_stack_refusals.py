"""What is refused before anything starts, and the demo user."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memory_service.v1 import memory_pb2 as pb
from stack.__main__ import main
from stack.demo import USER, seed
from stack.failures import StartFailed
from stack.plan import Addresses, programs
from stack.refusals import held, refuse_taken
from tests.services.scripted_agent import scripted_memory, serving_scripted

ROOT = Path(__file__).parents[3]


def test_a_data_folder_is_held_by_one_and_free_again_afterwards(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    with held(data), pytest.raises(StartFailed, match="is in use by another"), held(data):
        pass
    with held(data):
        pass


def test_a_data_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StartFailed, match="cannot hold the data: File exists"), held(file):
        pass


def test_a_port_that_somebody_listens_on_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        planned = programs(Addresses("127.0.0.1:1", taken, "127.0.0.1:2"), tmp_path, {})
        with pytest.raises(StartFailed, match=f"{taken} is taken, so agent cannot listen there"):
            refuse_taken(planned)
    refuse_taken(planned)


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "٣"])
def test_what_is_no_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["up", f"--memory-port={port}"])
    assert ended.value.code == 2
    assert "is no port: 1 to 65535" in capsys.readouterr().err


async def test_the_demo_user_is_stored_by_one_request_whose_id_never_changes() -> None:
    memory = scripted_memory()
    memory.answers["GetStats"] = pb.GetStatsResponse(active_by_type={"fact": 5, "constraint": 3})
    async with serving_scripted(memory, token="s3cret") as server:
        for _ in range(2):
            assert await asyncio.to_thread(seed, server.address, token="s3cret") == 8
    (name, first), (_, stats), (_, second), _ = memory.asked
    assert name == "BatchCreateMemories"
    assert first == second
    assert (first.user_id, stats.user_id) == (USER, USER)
    types = {item.memory_type for item in first.memories}
    assert types == set(pb.MemoryType.values()) - {pb.MEMORY_TYPE_UNSPECIFIED}


async def test_a_demo_user_who_is_not_taken_ends_the_start_in_one_line() -> None:
    async with serving_scripted(scripted_memory(), token="s3cret") as server:
        with pytest.raises(StartFailed) as caught:
            await asyncio.to_thread(seed, server.address)
    assert str(caught.value).startswith("memory did not take the demo user: UNAUTHENTICATED")


def test_compose_env_says_what_it_did_and_did_not_do(tmp_path: Path) -> None:
    def run() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, ROOT / "stack" / "compose_env.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert (first := run()).returncode == 0, first.stderr
    written = (tmp_path / ".env").read_text(encoding="ascii")
    second = run()
    assert second.returncode == 1
    assert second.stderr == ".env is there already and was left as it is\n"
    assert (tmp_path / ".env").read_text(encoding="ascii") == written
