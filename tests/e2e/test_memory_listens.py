"""Who may call, and how many processes answer."""

from pathlib import Path

import grpc
import pytest

from memory_service.v1 import memory_pb2 as pb
from rpc.errors import read_failure
from tests.e2e.memories import contents, user_of
from tests.e2e.processes import memory_program, poll
from tests.services.mariadb import MariaDB
from tests.services.milvus import Milvus


def test_calls_without_the_token_are_unauthenticated(tmp_path: Path) -> None:
    with memory_program(tmp_path, MEMORY_SERVICE_TOKEN="s3cret") as program:
        program.start()
        with user_of(program.address, token="s3cret") as user:
            user.create("Likes tea.")
            assert contents(user.retrieve("tea")) == ["Likes tea."]
        for token in ("", "wrong", "s3cre", "s3cret2"):
            with user_of(program.address, user.user_id, token=token) as stranger:
                for call in (stranger.listed, lambda: stranger.retrieve("tea")):
                    with pytest.raises(grpc.RpcError) as refused:
                        call()
                    assert read_failure(refused.value).code is grpc.StatusCode.UNAUTHENTICATED
        assert "s3cret" not in program.log.read_text()


@pytest.mark.mariadb
@pytest.mark.milvus_server
def test_two_workers_answer_with_one_voice(
    mariadb_server: MariaDB, milvus: Milvus, tmp_path: Path
) -> None:
    knobs = {
        "MEMORY_DATABASE_URL": mariadb_server.url(),
        "MEMORY_MILVUS_URI": milvus.uri,
        "MEMORY_MILVUS_NAMESPACE": "workers_",
    }
    with memory_program(tmp_path, **knobs) as program:
        assert program.run("migrate").returncode == 0
        program.start("--workers", "2")
        poll(lambda: listeners(program.address), lambda number: number == 2)
        revision = 0
        # Each connection is one worker's; the kernel shares them out.
        for number in range(24):
            with user_of(program.address, "the user") as user:
                revision = user.create(f"Fact {number}.").revision
            with user_of(program.address, "the user") as user:
                answer = user.retrieve(f"Fact {number}.", min_revision=revision)
                assert f"Fact {number}." in contents(answer)
        with user_of(program.address, "the user") as user:
            assert len(user.listed()) == revision == 24
            first, second = (user.says(f"Remember that I own {n} cats.") for n in (2, 3))
            done = poll(lambda: user.job(second), lambda job: job.state == pb.JOB_STATE_DONE)
            assert done.attempt == user.job(first).attempt == 1
            learnt = len(user.listed())
            assert learnt > 24
            poll(user.index_states, lambda states: states == {"synced": learnt})
            poll(lambda: user.retrieve("Fact 3."), lambda answer: not answer.degraded)
        assert program.stop() == 0


def listeners(address: str) -> int:
    """Count the sockets that listen on an address's port."""
    port = f":{int(address.rpartition(':')[2]):04X}"
    tables = [Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6")]
    sockets = [line.split() for table in tables for line in table.splitlines()]
    return sum(one[1].endswith(port) and one[3] == "0A" for one in sockets)
