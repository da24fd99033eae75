"""Isolation and idempotency over real gRPC, with odd ids."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from memory_service.v1 import memory_pb2 as pb
from rpc.errors import Failure, read_failure

ODD_USERS = (
    'x" or user_id != "y',
    'a"b',
    "a\\b",
    "a'b",
    "a\u2028b",
    "team_1",
    "teamX1",
    "team_10",
    "%",
    "Ann",
    "ann",
    "ann ",
    "🙂",
    "🙃",
    "é",
    "e\u0301",
    "u" * 128,
)


async def create(server: Any, user_id: str, content: str, request_id: str = "r") -> pb.Memory:
    memory = pb.Memory(memory_type=pb.MEMORY_TYPE_CONSTRAINT, content=content)
    answer = await server.stub.CreateMemory(
        pb.CreateMemoryRequest(user_id=user_id, request_id=request_id, memory=memory)
    )
    return answer.memory  # type: ignore[no-any-return]


async def contents(server: Any, user_id: str) -> list[str]:
    page = await server.stub.ListMemories(pb.ListMemoriesRequest(user_id=user_id, page_size=200))
    return sorted(memory.content for memory in page.memories)


async def found(server: Any, user_id: str, query: str) -> list[str]:
    request = pb.RetrieveRequest(user_id=user_id, query=query)
    answer = await server.stub.Retrieve(request)
    assert not answer.degraded
    return sorted(item.memory.content for item in answer.items)


async def failure(call: Any) -> Failure:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return read_failure(caught.value)


async def test_users_with_odd_ids_have_exactly_their_own(memory_server: Any) -> None:
    for place, user_id in enumerate(ODD_USERS):
        await create(memory_server, user_id, f"Likes the sea, number {place}.")
    for _ in range(600):
        if not await memory_server.app.store.outbox.depth():
            break
        await asyncio.sleep(0.05)
    for place, user_id in enumerate(ODD_USERS):
        own = [f"Likes the sea, number {place}."]
        assert await contents(memory_server, user_id) == own
        assert await found(memory_server, user_id, "the sea") == own
        assert len(await memory_server.app.index.ids(user_id)) == 1
    assert await contents(memory_server, "nobody") == []
    assert await found(memory_server, "nobody", "the sea") == []


async def test_writes_of_two_users_at_once_do_not_mix(memory_server: Any) -> None:
    await asyncio.gather(
        *(
            create(memory_server, user_id, f"{user_id} {number}", f"r{number}")
            for number in range(20)
            for user_id in ("ua", "ub")
        )
    )
    for user_id in ("ua", "ub"):
        assert await contents(memory_server, user_id) == sorted(
            f"{user_id} {number}" for number in range(20)
        )


async def test_what_belongs_to_another_user_is_not_found(memory_server: Any) -> None:
    theirs = await create(memory_server, "u2", "Likes tea.")
    mask = FieldMask(paths=["title"])
    stub, mine = memory_server.stub, {"user_id": "u1", "memory_id": theirs.memory_id}
    change = pb.Memory(memory_id=theirs.memory_id, version=1, title="mine")
    calls = (
        stub.GetMemory(pb.GetMemoryRequest(**mine)),
        stub.UpdateMemory(
            pb.UpdateMemoryRequest(user_id="u1", request_id="a", memory=change, update_mask=mask)
        ),
        stub.DeleteMemory(pb.DeleteMemoryRequest(request_id="b", **mine)),
        stub.RestoreMemory(pb.RestoreMemoryRequest(request_id="c", **mine)),
    )
    for call in calls:
        refused = await failure(call)
        assert (refused.code, refused.reason) == (grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND")
        assert theirs.memory_id not in refused.message
    many = await stub.BatchGetMemories(
        pb.BatchGetMemoriesRequest(user_id="u1", memory_ids=[theirs.memory_id])
    )
    assert not many.memories
    got = await stub.GetMemory(pb.GetMemoryRequest(user_id="u2", memory_id=theirs.memory_id))
    theirs.ClearField("index_state")
    got.memory.ClearField("index_state")
    assert got.memory == theirs


async def test_a_page_token_of_one_user_is_no_token_of_another(memory_server: Any) -> None:
    for number in range(3):
        await create(memory_server, "u2", f"{number}", f"r{number}")
    page = await memory_server.stub.ListMemories(pb.ListMemoriesRequest(user_id="u2", page_size=1))
    stolen = pb.ListMemoriesRequest(user_id="u1", page_token=page.next_page_token)
    refused = await failure(memory_server.stub.ListMemories(stolen))
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert [violation.field for violation in refused.violations] == ["page_token"]


def _mutations(memory_id: str, version: int) -> list[tuple[str, Any, Any]]:
    """Give each mutation twice: as it is sent, and with another body."""
    memory = pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content="Likes tea.")
    other = pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content="Likes coffee.")
    change = pb.Memory(memory_id=memory_id, version=version, title="a", importance=0.1)
    ids: dict[str, Any] = {"user_id": "u1", "request_id": "same"}
    titled, weighed = FieldMask(paths=["title"]), FieldMask(paths=["importance"])
    off = FieldMask(paths=["memory_enabled"])
    explicit = FieldMask(paths=["implicit_memory_enabled"])
    return [
        (
            "CreateMemory",
            pb.CreateMemoryRequest(memory=memory, **ids),
            pb.CreateMemoryRequest(memory=other, **ids),
        ),
        (
            "BatchCreateMemories",
            pb.BatchCreateMemoriesRequest(memories=[memory], **ids),
            pb.BatchCreateMemoriesRequest(memories=[other], **ids),
        ),
        (
            "UpdateMemory",
            pb.UpdateMemoryRequest(memory=change, update_mask=titled, **ids),
            pb.UpdateMemoryRequest(memory=change, update_mask=weighed, **ids),
        ),
        (
            "DeleteMemory",
            pb.DeleteMemoryRequest(memory_id=memory_id, **ids),
            pb.DeleteMemoryRequest(memory_id="other", **ids),
        ),
        (
            "RestoreMemory",
            pb.RestoreMemoryRequest(memory_id=memory_id, **ids),
            pb.RestoreMemoryRequest(memory_id="other", **ids),
        ),
        (
            "UpdateUserSettings",
            pb.UpdateUserSettingsRequest(update_mask=explicit, **ids),
            pb.UpdateUserSettingsRequest(update_mask=off, **ids),
        ),
    ]


@pytest.mark.parametrize("number", range(6))
async def test_the_same_request_is_done_once_and_answered_twice(
    memory_server: Any, number: int
) -> None:
    first = await create(memory_server, "u1", "Never nuts.")
    rpc, request, other = _mutations(first.memory_id, first.version)[number]
    call = getattr(memory_server.stub, rpc)
    answer = await call(request)
    revision = (await memory_server.app.store.reader.stats("u1")).revision
    assert await call(request) == answer
    refused = await failure(call(other))
    assert (refused.code, refused.reason) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "REQUEST_ID_REUSED",
    )
    elsewhere = pb.RestoreMemoryRequest(user_id="u1", request_id="same", memory_id="elsewhere")
    refused = await failure(memory_server.stub.RestoreMemory(elsewhere))
    assert refused.reason == "REQUEST_ID_REUSED"
    assert (await memory_server.app.store.reader.stats("u1")).revision == revision


async def test_a_refused_request_may_be_sent_again(memory_server: Any) -> None:
    made = await create(memory_server, "u1", "Likes tea.")
    change = pb.Memory(memory_id=made.memory_id, version=7, title="t")
    request = pb.UpdateMemoryRequest(
        user_id="u1", request_id="again", memory=change, update_mask=FieldMask(paths=["title"])
    )
    assert (await failure(memory_server.stub.UpdateMemory(request))).reason == "STALE_VERSION"
    request.memory.version = 1
    assert (await memory_server.stub.UpdateMemory(request)).memory.title == "t"
