"""Learning from turns over real gRPC: stored at once, done in order, seen by their user only."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.app.learning import make_learner
from memory_service.consolidate.allowed import Learns
from memory_service.domain.errors import ModelUnreadable
from memory_service.ports import ClaimedJob
from memory_service.v1 import memory_pb2 as pb
from rpc.errors import Failure, read_failure

DONE, PARKED = pb.JOB_STATE_DONE, pb.JOB_STATE_PARKED


def asked(
    said: str = "I am allergic to peanuts.",
    *,
    user_id: str = "u1",
    request_id: str = "r1",
    turn_id: str = "t1",
    seconds: int = 1_700_000_000,
) -> pb.IngestTurnRequest:
    request = pb.IngestTurnRequest(
        user_id=user_id, request_id=request_id, conversation_id="c1", turn_id=turn_id
    )
    request.messages.add(
        role=pb.MESSAGE_ROLE_USER, content=said, create_time=Timestamp(seconds=seconds)
    )
    return request


async def ingest(server: Any, *args: Any, **fields: Any) -> str:
    answer = await server.stub.IngestTurn(asked(*args, **fields))
    return str(answer.job_id)


async def job(server: Any, job_id: str, user_id: str = "u1") -> pb.IngestJob:
    answer = await server.stub.GetIngestJob(pb.GetIngestJobRequest(user_id=user_id, job_id=job_id))
    return answer.job  # type: ignore[no-any-return]


async def ended(server: Any, job_id: str, user_id: str = "u1") -> pb.IngestJob:
    """Wait until the job is done or parked."""
    while True:
        found = await job(server, job_id, user_id)
        if found.state in {DONE, PARKED}:
            return found
        await asyncio.sleep(0.01)


async def failure(call: Any) -> Failure:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return read_failure(caught.value)


async def listed(server: Any, **fields: Any) -> list[str]:
    request = pb.ListIngestJobsRequest(**{"user_id": "u1"} | fields)
    return [each.job_id for each in (await server.stub.ListIngestJobs(request)).jobs]


async def test_a_turn_is_stored_at_once_and_learnt_from_soon(memory_server: Any) -> None:
    job_id = await ingest(memory_server)
    done = await ended(memory_server, job_id)
    assert (done.job_id, done.conversation_id, done.turn_id) == (job_id, "c1", "t1")
    assert (done.state, done.attempt, done.last_error) == (DONE, 1, "")
    (decision,) = done.outcome.decisions
    assert decision.action == pb.DECISION_ACTION_ADD
    page = await memory_server.stub.ListMemories(pb.ListMemoriesRequest(user_id="u1"))
    assert [memory.memory_id for memory in page.memories] == [decision.memory_id]
    assert "peanuts" in page.memories[0].content
    assert await ingest(memory_server) == job_id, "the same request has the same job"
    other = await failure(memory_server.stub.IngestTurn(asked("I like tea.")))
    assert (other.code, other.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    assert await listed(memory_server) == [job_id]


async def test_jobs_are_seen_by_their_user_only(memory_server: Any) -> None:
    mine = await ingest(memory_server, user_id="u1")
    theirs = await ingest(memory_server, user_id="u2")
    await ended(memory_server, theirs, "u2")
    for call in (
        memory_server.stub.GetIngestJob(pb.GetIngestJobRequest(user_id="u2", job_id=mine)),
        memory_server.stub.RetryIngestJob(
            pb.RetryIngestJobRequest(user_id="u2", request_id="r2", job_id=mine)
        ),
    ):
        refused = await failure(call)
        assert (refused.code, refused.reason) == (grpc.StatusCode.NOT_FOUND, "JOB_NOT_FOUND")
    assert await listed(memory_server) == [mine]
    assert await listed(memory_server, user_id="u2") == [theirs]
    assert await listed(memory_server, user_id="u") == []


async def test_lists_have_pages_and_filters(memory_server: Any) -> None:
    ids = [
        await ingest(memory_server, f"Hello {n}.", request_id=f"r{n}", turn_id=f"t{n % 2}")
        for n in range(5)
    ]
    await ended(memory_server, ids[-1])
    assert await listed(memory_server, states=[DONE]) == ids[::-1]
    assert await listed(memory_server, states=[PARKED]) == []
    assert await listed(memory_server, turn_id="t1") == [ids[3], ids[1]]
    assert await listed(memory_server, conversation_id="other") == []
    request = pb.ListIngestJobsRequest(user_id="u1", page_size=2)
    found: list[str] = []
    while True:
        page = await memory_server.stub.ListIngestJobs(request)
        found += [each.job_id for each in page.jobs]
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert found == ids[::-1]
    stats = await memory_server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))
    assert dict(stats.jobs_by_state) == {"done": 5}
    assert not stats.HasField("oldest_job_time")


async def test_what_the_user_forbids_is_not_learnt_and_that_is_said(memory_server: Any) -> None:
    await memory_server.stub.UpdateUserSettings(
        pb.UpdateUserSettingsRequest(
            user_id="u1",
            request_id="off",
            settings=pb.UserSettings(memory_enabled=False),
            update_mask=FieldMask(paths=["memory_enabled"]),
        )
    )
    done = await ended(memory_server, await ingest(memory_server))
    assert (done.state, done.outcome) == (DONE, pb.IngestOutcome(warnings=["settings"]))


async def test_what_was_said_before_an_erasure_is_not_learnt_and_that_is_said(
    memory_server: Any,
) -> None:
    erased = await memory_server.stub.EraseUser(
        pb.EraseUserRequest(user_id="u1", request_id="erase")
    )
    old = await ended(memory_server, await ingest(memory_server))
    assert (old.state, old.outcome) == (DONE, pb.IngestOutcome(warnings=["erased"]))
    later = erased.erase_time.seconds + 1
    new = await ended(memory_server, await ingest(memory_server, request_id="r2", seconds=later))
    assert new.outcome.message_intent


class Unreadable:
    """Learns from nothing until it is told to, and then as the service does."""

    def __init__(self, learner: Learns) -> None:
        self._learner = learner
        self.readable = False

    async def learn(self, claimed: ClaimedJob) -> None:
        if not self.readable:
            raise ModelUnreadable
        await self._learner.learn(claimed)


async def test_a_parked_job_is_retried_once_it_is_asked_for(
    serve_memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners: list[Unreadable] = []

    def make_unreadable(*parts: Any, **more: Any) -> Unreadable:
        learners.append(Unreadable(make_learner(*parts, **more)))
        return learners[0]

    monkeypatch.setattr("memory_service.app.opening.make_learner", make_unreadable)
    async with serve_memory(milvus_uri="off", job_max_attempts=1) as server:
        job_id = await ingest(server)
        parked = await ended(server, job_id)
        assert (parked.state, parked.attempt) == (PARKED, 1)
        assert parked.last_error == "MODEL_UNREADABLE"
        learners[0].readable = True
        retry = pb.RetryIngestJobRequest(user_id="u1", request_id="again", job_id=job_id)
        queued = (await server.stub.RetryIngestJob(retry)).job
        assert (queued.state, queued.attempt) == (pb.JOB_STATE_PENDING, 0)
        assert (await ended(server, job_id)).state == DONE
        assert (await server.stub.RetryIngestJob(retry)).job == queued
        retry.request_id = "once more"
        refused = await failure(server.stub.RetryIngestJob(retry))
        assert (refused.code, refused.reason) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "JOB_NOT_PARKED",
        )


class Hanging:
    """Never comes to an end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def learn(self, _claimed: ClaimedJob) -> None:
        self.begun.set()
        await asyncio.Event().wait()


async def test_a_service_that_is_stopped_gives_back_what_it_learns_from(
    serve_memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = Hanging()
    with monkeypatch.context() as patched:
        patched.setattr("memory_service.app.opening.make_learner", lambda *_, **__: hanging)
        async with serve_memory(milvus_uri="off") as server:
            job_id = await ingest(server)
            await hanging.begun.wait()
    async with serve_memory(milvus_uri="off") as server:
        assert (await ended(server, job_id)).attempt == 1


async def test_many_users_at_once_each_in_order(memory_server: Any) -> None:
    users = [f"u{n}" for n in range(8)]

    async def talk(user: str) -> list[str]:
        return [
            await ingest(memory_server, f"Hello {n}.", user_id=user, request_id=f"r{n}")
            for n in range(3)
        ]

    ids = await asyncio.gather(*map(talk, users))
    for user, jobs in zip(users, ids, strict=True):
        for job_id in jobs:
            assert (await ended(memory_server, job_id, user)).attempt == 1
