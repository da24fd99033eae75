"""ExportMemories and ImportMemories, as clients meet them."""

from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import pytest

from memory_service.v1 import memory_pb2 as pb
from rpc.errors import read_failure
from tests.integration.memory_service.conftest import Serve


async def create(server: Any, user_id: str, *contents: str) -> list[pb.Memory]:
    answer = await server.stub.BatchCreateMemories(
        pb.BatchCreateMemoriesRequest(
            user_id=user_id,
            request_id=f"{user_id} {contents[0][:20]}",
            memories=[
                pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content=content) for content in contents
            ],
        )
    )
    return [result.memory for result in answer.results]


async def exported(server: Any, user_id: str = "u1") -> list[pb.Memory]:
    stream = server.stub.ExportMemories(pb.ExportMemoriesRequest(user_id=user_id))
    return [message.memory async for message in stream]


def messages(
    memories: Sequence[pb.Memory], user_id: str, request_id: str
) -> Iterator[pb.ImportMemoriesRequest]:
    for memory in memories:
        yield pb.ImportMemoriesRequest(user_id=user_id, request_id=request_id, memory=memory)


async def imports(
    server: Any, memories: Sequence[pb.Memory], user_id: str = "u1", request_id: str = "i1"
) -> pb.ImportMemoriesResponse:
    answer: pb.ImportMemoriesResponse = await server.stub.ImportMemories(
        messages(memories, user_id, request_id)
    )
    return answer


def comparable(memories: Sequence[pb.Memory]) -> list[pb.Memory]:
    """Leave out what an import does not keep: revision and index state."""
    copies = []
    for memory in memories:
        copy = pb.Memory()
        copy.CopyFrom(memory)
        copy.ClearField("revision")
        copy.ClearField("index_state")
        copies.append(copy)
    return copies


async def test_what_was_exported_comes_back_as_it_was_after_an_erasure(
    memory_server: Any,
) -> None:
    kept, gone = await create(memory_server, "u1", "Likes tea 🙂.", "喜欢咖啡。")
    await memory_server.stub.DeleteMemory(
        pb.DeleteMemoryRequest(user_id="u1", request_id="d", memory_id=gone.memory_id)
    )
    before = await exported(memory_server)
    assert [memory.memory_id for memory in before] == sorted([kept.memory_id, gone.memory_id])
    assert {memory.status for memory in before} == {
        pb.MEMORY_STATUS_ACTIVE,
        pb.MEMORY_STATUS_DELETED,
    }
    await memory_server.stub.EraseUser(pb.EraseUserRequest(user_id="u1", request_id="e"))
    assert await exported(memory_server) == []
    answer = await imports(memory_server, before)
    assert (answer.created, answer.refreshed, answer.failed) == (2, 0, 0)
    assert comparable(await exported(memory_server)) == comparable(before)
    found = await memory_server.stub.Retrieve(pb.RetrieveRequest(user_id="u1", query="tea"))
    assert [item.memory.content for item in found.items] == ["Likes tea 🙂."]


async def test_sent_again_it_doubles_nothing(memory_server: Any) -> None:
    contents = [f"Fact number {number}." for number in range(120)]
    await create(memory_server, "u1", *contents)
    rows = await exported(memory_server)
    first = await imports(memory_server, rows)
    assert (first.created, first.refreshed, first.failed) == (0, 120, 0)
    assert await imports(memory_server, rows) == first
    assert (await imports(memory_server, rows, request_id="i2")).refreshed == 120
    assert comparable(await exported(memory_server)) == comparable(rows)


async def test_memories_of_another_user_are_copied_under_new_ids_and_stay_with_them(
    memory_server: Any,
) -> None:
    await create(memory_server, "u1", "Likes tea.", "Likes cake.")
    theirs = await exported(memory_server)
    for memory in theirs:
        memory.user_id = ""
    copied = await imports(memory_server, theirs, user_id="u2")
    assert copied.created == 2
    mine = await exported(memory_server, "u2")
    assert {memory.content for memory in mine} == {"Likes tea.", "Likes cake."}
    assert {one.memory_id for one in mine}.isdisjoint(one.memory_id for one in theirs)
    assert len(await exported(memory_server)) == 2
    again = await imports(memory_server, theirs, user_id="u2", request_id="i2")
    assert (again.created, again.refreshed) == (0, 2)


async def test_refused_items_are_counted_and_the_first_hundred_named(memory_server: Any) -> None:
    good = pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content="Likes tea.")
    bad = [pb.Memory(content="no type", memory_id=f"m{number}") for number in range(130)]
    others = pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content="Not mine.", user_id="u9")
    answer = await imports(memory_server, [*bad, good, others])
    assert (answer.created, answer.failed, len(answer.errors)) == (1, 131, 100)
    assert [error.index for error in answer.errors] == list(range(100))
    assert answer.errors[0].code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "memory.memory_type" in answer.errors[0].message


async def test_a_version_that_no_memory_reaches_is_refused_and_one_at_the_bound_can_change(
    memory_server: Any,
) -> None:
    tea, cake, rice = (
        pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content=content, version=version)
        for content, version in (("Tea.", 2**63 - 1), ("Cake.", 2**53 + 1), ("Rice.", 2**53))
    )
    answer = await imports(memory_server, [tea, cake, rice])
    assert (answer.created, answer.failed) == (1, 2)
    assert all("memory.version" in error.message for error in answer.errors)
    (kept,) = await exported(memory_server)
    deleted = await memory_server.stub.DeleteMemory(
        pb.DeleteMemoryRequest(user_id="u1", request_id="d1", memory_id=kept.memory_id)
    )
    assert deleted.memory.version == 2**53 + 1


async def test_each_message_names_the_same_user_and_request_and_there_is_one(
    serve_memory: Serve,
) -> None:
    memory = pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content="Likes tea.")
    async with serve_memory() as server:
        for headers, field in (
            ([], "user_id"),
            ([("", "r")], "user_id"),
            ([("u1", "")], "request_id"),
            ([("u1", "r"), ("u2", "r")], "user_id"),
            ([("u1", "r"), ("u1", "r2")], "request_id"),
        ):
            sent = [
                pb.ImportMemoriesRequest(user_id=user, request_id=request, memory=memory)
                for user, request in headers
            ]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await server.stub.ImportMemories(iter(sent))
            failure = read_failure(refused.value)
            assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
            assert [violation.field for violation in failure.violations] == [field]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await exported(server, "")
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_no_connection_is_held_while_a_client_of_an_export_is_slow(
    serve_memory: Serve,
) -> None:
    async with serve_memory(database_threads=1) as server:
        await create(server, "u1", *(f"{number} {'x' * 16_000}" for number in range(80)))
        stream = aiter(server.stub.ExportMemories(pb.ExportMemoriesRequest(user_id="u1")))
        await anext(stream)
        await create(server, "u1", "Said meanwhile.")
        assert len([message async for message in stream]) == 79
