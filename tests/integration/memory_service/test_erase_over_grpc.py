"""EraseUser, as clients meet it."""

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from memory_service.adapters.milvus.causes import Cause
from memory_service.domain.errors import IndexUnavailable
from memory_service.v1 import memory_pb2 as pb
from tests.integration.memory_service.conftest import MemoryServer
from tests.integration.memory_service.test_cases_over_grpc import indexed


async def keep(server: MemoryServer, user_id: str, *contents: str) -> list[str]:
    """Store memories, at most 500 at once, and give their ids."""
    answer = await server.stub.BatchCreateMemories(
        pb.BatchCreateMemoriesRequest(
            user_id=user_id,
            request_id=f"{user_id} {contents[0]}",
            memories=[
                pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content=content) for content in contents
            ],
        )
    )
    return [result.memory.memory_id for result in answer.results]


async def erase(
    server: MemoryServer, user_id: str = "u1", request_id: str = "e1"
) -> pb.EraseUserResponse:
    answer: pb.EraseUserResponse = await server.stub.EraseUser(
        pb.EraseUserRequest(user_id=user_id, request_id=request_id)
    )
    return answer


async def found(server: MemoryServer, user_id: str, query: str) -> pb.RetrieveResponse:
    answer: pb.RetrieveResponse = await server.stub.Retrieve(
        pb.RetrieveRequest(user_id=user_id, query=query)
    )
    return answer


async def listed(server: MemoryServer, user_id: str = "u1") -> list[str]:
    answer = await server.stub.ListMemories(pb.ListMemoriesRequest(user_id=user_id))
    return [memory.content for memory in answer.memories]


async def test_a09_erasing_one_user_leaves_the_others_stored_and_found(
    memory_server: MemoryServer,
) -> None:
    for user in ("u1", "u2"):
        await keep(memory_server, user, *(f"Drink number {n} is tea." for n in range(3)))
    await found(memory_server, "u1", "tea")
    receipt = await erase(memory_server)
    assert receipt.erased["memories"] == 3
    assert receipt.pending_stores == []
    assert await listed(memory_server) == []
    assert len(await listed(memory_server, "u2")) == 3
    mine = await found(memory_server, "u1", "tea")
    theirs = await found(memory_server, "u2", "tea")
    assert (len(mine.items), len(theirs.items)) == (0, 3)
    assert not mine.degraded
    index = memory_server.app.index
    assert index is not None
    assert await index.ids("u1") == frozenset()


async def test_a10_two_hundred_and_fifty_memories_go_in_one_call(
    memory_server: MemoryServer,
) -> None:
    await keep(memory_server, "u1", *(f"Fact number {n}." for n in range(250)))
    receipt = await erase(memory_server)
    assert receipt.erased["memories"] == 250
    assert receipt.erased["memory_history"] == 250
    assert await listed(memory_server) == []
    stats = await memory_server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))
    assert not any(stats.memories_by_status.values())


async def test_the_revision_goes_on_and_a_working_set_of_before_is_void(
    memory_server: MemoryServer,
) -> None:
    await keep(memory_server, "u1", "Likes tea.")
    before = await found(memory_server, "u1", "tea")
    assert len(before.items) == 1
    await erase(memory_server)
    await keep(memory_server, "u1", "Likes coffee.")
    after = await found(memory_server, "u1", "tea or coffee")
    assert [item.memory.content for item in after.items] == ["Likes coffee."]
    assert after.revision > before.revision


async def test_settings_are_the_defaults_again(memory_server: MemoryServer) -> None:
    await memory_server.stub.UpdateUserSettings(
        pb.UpdateUserSettingsRequest(
            user_id="u1",
            request_id="s",
            settings=pb.UserSettings(sensitive_memory_enabled=True),
            update_mask=FieldMask(paths=["sensitive_memory_enabled"]),
        )
    )
    assert (await erase(memory_server)).erased["memory_user_states"] == 1
    answer = await memory_server.stub.GetUserSettings(pb.GetUserSettingsRequest(user_id="u1"))
    assert not answer.settings.sensitive_memory_enabled
    assert answer.settings.memory_enabled


async def test_the_same_request_gets_the_same_receipt_and_spares_what_came_later(
    memory_server: MemoryServer,
) -> None:
    await keep(memory_server, "u1", "Likes tea.")
    first = await erase(memory_server)
    await keep(memory_server, "u1", "Likes coffee.")
    assert await erase(memory_server) == first
    assert await listed(memory_server) == ["Likes coffee."]
    assert (await erase(memory_server, request_id="e2")).erased["memories"] == 1


async def test_the_answer_of_an_erased_request_is_not_kept(memory_server: MemoryServer) -> None:
    (before,) = await keep(memory_server, "u1", "Likes tea.")
    await erase(memory_server)
    (after,) = await keep(memory_server, "u1", "Likes tea.")
    assert after != before


async def test_an_index_out_of_reach_is_pending_and_its_relay_tells_it_all_the_same(
    memory_server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await keep(memory_server, "u1", "Likes tea.", "Likes cake.")
    index = memory_server.app.index
    assert index is not None
    await indexed(memory_server)
    assert await index.ids("u1") == frozenset(ids)
    with monkeypatch.context() as fault:
        fault.setattr(index, "ids", _away)
        receipt = await erase(memory_server)
    assert receipt.pending_stores == ["index"]
    assert receipt.erased["index"] == 0
    assert await listed(memory_server) == []
    assert not (await found(memory_server, "u1", "tea")).items
    await indexed(memory_server)
    assert await index.ids("u1") == frozenset()


async def _away(_user_id: str) -> frozenset[str]:
    raise IndexUnavailable(Cause.UNAVAILABLE)
