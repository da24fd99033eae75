"""Turns kept word for word, over real gRPC: off by default, found later, gone after 90 days."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.v1 import memory_pb2 as pb
from rpc.errors import read_failure
from rpc.ids import utc_now

USER, ASSISTANT = pb.MESSAGE_ROLE_USER, pb.MESSAGE_ROLE_ASSISTANT
TALKS = {
    "en": (
        "Where did the sofa end up?",
        "It went into the attic, under the window.",
        [
            (USER, "Guess what we did yesterday."),
            (ASSISTANT, "Where did the sofa end up?"),
            (USER, "It went into the attic, under the window."),
            (ASSISTANT, "The sofa must look lovely there."),
        ],
    ),
    "zh": (
        "沙发放在哪里了？",
        "阁楼的窗户下面。",
        [
            (USER, "你猜我们昨天做了什么。"),
            (ASSISTANT, "沙发放在哪里了？"),
            (USER, "阁楼的窗户下面。"),
            (ASSISTANT, "沙发在那里一定很好看。"),
        ],
    ),
}


class LaterClock:
    """The time, and a while later when a test says so."""

    def __init__(self) -> None:
        self.later = timedelta(0)

    def __call__(self) -> datetime:
        return utc_now() + self.later


async def want(server: Any, *, enabled: bool) -> None:
    await server.stub.UpdateUserSettings(
        pb.UpdateUserSettingsRequest(
            user_id="u1",
            request_id=f"settings {enabled}",
            settings=pb.UserSettings(verbatim_turns_enabled=enabled),
            update_mask=FieldMask(paths=["verbatim_turns_enabled"]),
        )
    )


async def learn(
    server: Any, said: list[tuple[pb.MessageRole.ValueType, str]], request_id: str = "r1"
) -> pb.IngestOutcome:
    request = pb.IngestTurnRequest(
        user_id="u1", request_id=request_id, conversation_id="c1", turn_id="t1"
    )
    for seconds, (role, words) in enumerate(said):
        when = Timestamp(seconds=1_700_000_000 + seconds)
        request.messages.add(role=role, content=words, create_time=when)
    job_id = (await server.stub.IngestTurn(request)).job_id
    while True:
        asked = pb.GetIngestJobRequest(user_id="u1", job_id=job_id)
        job = (await server.stub.GetIngestJob(asked)).job
        if job.state == pb.JOB_STATE_DONE:
            return job.outcome  # type: ignore[no-any-return]
        await asyncio.sleep(0.01)


async def recalled(server: Any, query: str, **more: Any) -> list[pb.RetrievedMemory]:
    request = pb.RetrieveRequest(user_id="u1", query=query, explain=True, **more)
    return list((await server.stub.Retrieve(request, timeout=30)).items)


async def listed(server: Any) -> list[pb.Memory]:
    request = pb.ListMemoriesRequest(user_id="u1")
    return list((await server.stub.ListMemories(request)).memories)


async def exported(server: Any) -> list[pb.Memory]:
    request = pb.ExportMemoriesRequest(user_id="u1")
    return [answer.memory async for answer in server.stub.ExportMemories(request)]


def shown(rows: Sequence[pb.Memory]) -> list[bytes]:
    """Give all of the rows but what the index knows of them, which the relay changes meanwhile."""
    for row in rows:
        row.ClearField("index_state")
    return sorted(row.SerializeToString(deterministic=True) for row in rows)


@pytest.mark.parametrize("language", sorted(TALKS))
async def test_what_was_said_three_weeks_ago_is_found_word_for_word_and_ends_after_90_days(
    serve_memory: Any, database_knobs: dict[str, Any], language: str
) -> None:
    question, answer, said = TALKS[language]
    clock = LaterClock()
    async with serve_memory(clock=clock, verbatim_turns=True, **database_knobs) as server:
        await want(server, enabled=True)
        assert list((await learn(server, said)).warnings) == []
        clock.later = timedelta(days=21)
        for mode in (pb.RETRIEVE_MODE_HYBRID, pb.RETRIEVE_MODE_LEGACY):
            found = await recalled(server, question, mode=mode)
            assert answer in [item.memory.content for item in found]
            assert {item.memory.role for item in found} == {USER}
        (found_answer,) = [
            item for item in await recalled(server, question) if item.memory.content == answer
        ]
        assert found_answer.relevance_parts["near"] > 0
        assert found_answer.memory.is_verbatim
        assert found_answer.memory.occur_time.seconds == 1_700_000_002
        clock.later = timedelta(days=90)
        assert await recalled(server, question) == []


async def test_users_see_move_and_delete_the_assistants_words_though_none_is_recalled(
    serve_memory: Any,
) -> None:
    _, _, said = TALKS["en"]
    async with serve_memory(verbatim_turns=True) as server:
        await want(server, enabled=True)
        await learn(server, said)
        rows = await listed(server)
        assert [(row.role, row.content) for row in reversed(rows)] == said
        assert await learn(server, said, "again") == pb.IngestOutcome(message_intent="chitchat")
        assert len(await listed(server)) == 4
        assert shown(await exported(server)) == shown(rows)
        (sofa,) = [row for row in rows if row.content == "The sofa must look lovely there."]
        await server.stub.DeleteMemory(
            pb.DeleteMemoryRequest(user_id="u1", request_id="d", memory_id=sofa.memory_id)
        )
        statuses = {row.content: row.status for row in await listed(server)}
        assert statuses[sofa.content] == pb.MEMORY_STATUS_DELETED
        brought = [
            pb.ImportMemoriesRequest(user_id="u2", request_id="i", memory=row) for row in rows
        ]
        for request in brought:
            request.memory.user_id = ""
        await server.stub.ImportMemories(iter(brought))
        theirs = await server.stub.ListMemories(pb.ListMemoriesRequest(user_id="u2"))
        in_order = sorted(theirs.memories, key=lambda row: row.occur_time.seconds)
        assert [(row.role, row.content) for row in in_order] == said


@pytest.mark.parametrize(("deployed", "wanted"), [(False, True), (True, False)])
async def test_by_default_nothing_is_kept(
    serve_memory: Any, *, deployed: bool, wanted: bool
) -> None:
    knobs = {"verbatim_turns": True} if deployed else {}
    async with serve_memory(milvus_uri="off", **knobs) as server:
        if wanted:
            await want(server, enabled=True)
        await learn(server, TALKS["en"][2])
        assert await listed(server) == []


async def test_who_spoke_is_set_once_and_for_verbatim_turns_only(serve_memory: Any) -> None:
    async with serve_memory(milvus_uri="off") as server:
        memory = pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content="Ok", role=ASSISTANT)
        request = pb.CreateMemoryRequest(user_id="u1", request_id="r1", memory=memory)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await server.stub.CreateMemory(request)
        assert read_failure(caught.value).code == grpc.StatusCode.INVALID_ARGUMENT
        request.memory.is_verbatim = True
        stored = (await server.stub.CreateMemory(request)).memory
        assert (stored.role, stored.index_state) == (ASSISTANT, pb.INDEX_STATE_REMOVED)
        assert await recalled(server, "Ok") == []
        assert await recalled(server, "Ok", mode=pb.RETRIEVE_MODE_LEGACY) == []
