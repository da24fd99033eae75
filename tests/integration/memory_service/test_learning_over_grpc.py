"""Learning by the rules, and what is told of it, over real gRPC, on each database."""

import asyncio
from typing import Any

import grpc
import pytest

from memory_service.v1 import memory_pb2 as pb
from tests.integration.memory_service.test_memories_by_hand import (
    PREFERENCE,
    create,
    failure,
    fresh,
    listed,
    retrieve,
    update,
)


def message(text: str, role: int = pb.MESSAGE_ROLE_USER) -> pb.TurnMessage:
    said = pb.TurnMessage(role=role, content=text)  # type: ignore[arg-type]
    said.create_time.FromJsonString("2026-05-08T12:00:00Z")
    return said


async def learn(server: Any, text: str, user_id: str = "u1", **fields: Any) -> Any:
    """Ingest a turn and wait for what came of it."""
    values = {"conversation_id": "c1", "turn_id": "t1"} | fields
    ingested = await server.stub.IngestTurn(
        pb.IngestTurnRequest(
            user_id=user_id, request_id=fresh(), messages=[message(text)], **values
        )
    )
    wanted = pb.GetIngestJobRequest(user_id=user_id, job_id=ingested.job_id)
    while True:
        job = (await server.stub.GetIngestJob(wanted)).job
        assert job.state != pb.JOB_STATE_PARKED, job.last_error
        if job.state == pb.JOB_STATE_DONE:
            return job.outcome
        await asyncio.sleep(0.02)


async def history(server: Any, memory_id: str = "", **fields: Any) -> Any:
    return await server.stub.ListMemoryHistory(
        pb.ListMemoryHistoryRequest(**{"user_id": "u1", "memory_id": memory_id} | fields)
    )


async def active(server: Any) -> list[str]:
    rows = await listed(server, statuses=[pb.MEMORY_STATUS_ACTIVE])
    return sorted(row.content for row in rows)


async def test_a17_a_changed_preference_is_recalled_and_the_old_one_is_history(
    memory_server: Any,
) -> None:
    await learn(memory_server, "I prefer tea.")
    outcome = await learn(memory_server, "I now prefer coffee, not tea.")
    (decision,) = outcome.decisions
    assert (decision.action, decision.reason) == (pb.DECISION_ACTION_ADD, "conflict")
    answer = await retrieve(memory_server, "what do I prefer to drink?")
    assert [item.memory.content for item in answer.items] == ["I now prefer coffee, not tea"]
    (tea,) = await listed(memory_server, statuses=[pb.MEMORY_STATUS_SUPERSEDED])
    assert (tea.content, tea.superseded_by) == ("I prefer tea", decision.memory_id)

    newest, oldest = (await history(memory_server, tea.memory_id)).entries
    assert newest.operation == pb.HISTORY_OPERATION_SUPERSEDE
    assert (newest.actor, newest.reason) == ("system", "conflict")
    assert newest.decision == decision
    (candidate,) = newest.decision.candidates
    assert (candidate.memory_id, candidate.relation) == (tea.memory_id, "conflict")
    assert 0 <= candidate.score <= 1
    assert newest.decision.prompt_version
    assert newest.HasField("create_time")
    assert (oldest.operation, oldest.HasField("before")) == (pb.HISTORY_OPERATION_CREATE, False)
    assert oldest.after.turn_id == "t1"


async def test_a_changed_home_in_chinese_makes_the_old_one_history(memory_server: Any) -> None:
    await learn(memory_server, "我住在北京")
    await learn(memory_server, "我搬到上海了")
    assert await active(memory_server) == ["我搬到上海了"]


async def test_a29_what_was_written_by_hand_is_not_learnt_a_second_time(
    memory_server: Any,
) -> None:
    by_hand = await create(memory_server, "I prefer tea", memory_type=PREFERENCE)
    (decision,) = (await learn(memory_server, "I prefer tea.")).decisions
    assert (decision.action, decision.reason) == (pb.DECISION_ACTION_NONE, "same_hash")
    assert decision.memory_id == by_hand.memory_id
    assert await active(memory_server) == ["I prefer tea"]


async def test_a_dry_run_decides_the_same_and_stores_nothing(memory_server: Any) -> None:
    await learn(memory_server, "I prefer tea.")
    revision = (await memory_server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))).revision
    dry = await memory_server.stub.DryRunIngest(
        pb.DryRunIngestRequest(
            user_id="u1",
            conversation_id="c1",
            messages=[
                message("I now prefer coffee, not tea."),
                message("Ok", pb.MESSAGE_ROLE_ASSISTANT),
            ],
        )
    )
    (decision,) = dry.outcome.decisions
    assert (decision.action, decision.memory_id) == (pb.DECISION_ACTION_ADD, "")
    assert len(decision.superseded_ids) == 1
    assert dry.outcome.message_intent == "preference"
    stats = await memory_server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))
    assert stats.revision == revision
    assert await active(memory_server) == ["I prefer tea"]


async def test_history_comes_in_pages_bound_to_user_and_memory(memory_server: Any) -> None:
    tea = await create(memory_server, "Tea")
    await create(memory_server, "Milk")
    tea = await update(memory_server, tea, "title", title="a")
    await update(memory_server, tea, "title", title="b")
    first = await history(memory_server, page_size=2)
    rest = await history(memory_server, page_token=first.next_page_token)
    told = [(one.after.content, one.after.version) for one in [*first.entries, *rest.entries]]
    assert told == [("Tea", 3), ("Tea", 2), ("Milk", 1), ("Tea", 1)]
    assert not rest.next_page_token
    for wrong in ({"memory_id": tea.memory_id}, {"user_id": "u2"}):
        with pytest.raises(grpc.aio.AioRpcError):
            await history(memory_server, page_token=first.next_page_token, **wrong)
    assert not (await history(memory_server, "unknown")).entries


async def revert(server: Any, memory_id: str, version: int, user_id: str = "u1") -> Any:
    return await server.stub.RevertMemory(
        pb.RevertMemoryRequest(
            user_id=user_id, request_id=fresh(), memory_id=memory_id, to_version=version
        )
    )


async def test_a_superseded_memory_comes_back_by_its_version(memory_server: Any) -> None:
    (decision,) = (await learn(memory_server, "I prefer tea.")).decisions
    await learn(memory_server, "I now prefer coffee, not tea.")
    back = (await revert(memory_server, decision.memory_id, 1)).memory
    assert (back.status, back.version) == (pb.MEMORY_STATUS_ACTIVE, 3)
    assert back.superseded_by == ""
    found = await retrieve(memory_server, "tea", min_revision=back.revision)
    assert [item.memory.content for item in found.items] == ["I prefer tea"]


async def test_what_cannot_be_reverted_says_why(memory_server: Any) -> None:
    tea = await create(memory_server, "Tea")
    assert (await failure(revert(memory_server, tea.memory_id, 2))).reason == "VERSION_NOT_FOUND"
    unknown = await failure(revert(memory_server, "unknown", 1))
    assert (unknown.code, unknown.reason) == (grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND")
    others = await failure(revert(memory_server, tea.memory_id, 1, user_id="u2"))
    assert others.reason == "MEMORY_NOT_FOUND"
    await update(memory_server, tea, "content", content="Coffee")
    await create(memory_server, "tea")
    equal = await failure(revert(memory_server, tea.memory_id, 1))
    assert (equal.code, equal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "EQUAL_MEMORY")


def watch(server: Any, after: int | None = None) -> Any:
    request = pb.WatchMemoriesRequest(user_id="u1")
    if after is not None:
        request.after_revision = after
    return server.stub.WatchMemories(request)


async def test_a_watch_tells_each_revision_and_goes_on_where_it_ended(memory_server: Any) -> None:
    tea = await create(memory_server, "Tea")
    stream = watch(memory_server)
    life = await stream.read()
    assert (life.revision, list(life.entries)) == (tea.revision, [])
    milk = await create(memory_server, "Milk")
    news = await stream.read()
    assert news.revision == milk.revision
    (entry,) = news.entries
    assert (entry.memory_id, entry.operation) == (milk.memory_id, pb.HISTORY_OPERATION_CREATE)
    stream.cancel()
    await create(memory_server, "Meanwhile")
    again = watch(memory_server, news.revision)
    assert (await again.read()).revision == news.revision
    assert (await again.read()).entries[0].after.content == "Meanwhile"
    again.cancel()
    whole = watch(memory_server, 0)
    told = [await whole.read() for _ in range(4)]
    assert [len(one.entries) for one in told] == [0, 1, 1, 1]
    whole.cancel()


async def test_a_watch_from_a_revision_never_reached_is_out_of_range(memory_server: Any) -> None:
    await create(memory_server, "Tea")
    assert (await failure(watch(memory_server, 99).read())).code == grpc.StatusCode.OUT_OF_RANGE
    nobody = memory_server.stub.WatchMemories(pb.WatchMemoriesRequest())
    assert (await failure(nobody.read())).code == grpc.StatusCode.INVALID_ARGUMENT
    below = await failure(watch(memory_server, -1).read())
    assert below.code == grpc.StatusCode.INVALID_ARGUMENT


async def test_a_watch_ends_when_the_server_says_goodbye(memory_server: Any) -> None:
    stream = watch(memory_server)
    await stream.read()
    memory_server.app.drain()
    assert (await failure(stream.read())).reason == "SHUTTING_DOWN"
