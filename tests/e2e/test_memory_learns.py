"""A worker that is killed while it has a job: nothing is lost, nothing is doubled."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_service.v1 import memory_pb2 as pb
from tests.e2e.memories import User, user_of
from tests.e2e.processes import memory_program, poll

LEASE = {"MEMORY_JOB_LEASE": "1", "MEMORY_MILVUS_URI": "off"}


@pytest.fixture
def silent_model() -> Iterator[str]:
    """Give the address of a model that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def in_hand(user: User, job_id: str) -> pb.IngestJob:
    """Wait until a worker has the job."""
    return poll(lambda: user.job(job_id), lambda job: job.state == pb.JOB_STATE_RUNNING)


def test_a_job_survives_the_death_of_its_worker_and_its_effect_is_once(
    tmp_path: Path, silent_model: str
) -> None:
    hanging = LEASE | {"MEMORY_LLM_BASE_URL": silent_model, "MEMORY_LLM_MODEL": "m"}
    with memory_program(tmp_path, **hanging) as program:
        program.start()
        with user_of(program.address) as user:
            job_id = user.says("I am allergic to peanuts.")
            assert in_hand(user, job_id).attempt == 1
        program.kill()
    with memory_program(tmp_path, **LEASE) as program:
        program.start()
        with user_of(program.address, user.user_id) as user:
            done = poll(lambda: user.job(job_id), lambda job: job.state == pb.JOB_STATE_DONE)
            assert done.attempt == 2
            (decision,) = done.outcome.decisions
            assert [memory.memory_id for memory in user.listed()] == [decision.memory_id]
