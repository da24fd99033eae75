"""Each RPC of this version, over real gRPC, SQLite and milvus-lite."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from memory_service.v1 import memory_pb2 as pb
from rpc.errors import Failure, read_failure
from tests.integration.memory_service.conftest import LONG

FACT = pb.MEMORY_TYPE_FACT
CONSTRAINT = pb.MEMORY_TYPE_CONSTRAINT
PREFERENCE = pb.MEMORY_TYPE_PREFERENCE
_numbers: Iterator[int] = count()


def fresh() -> str:
    return f"request-{next(_numbers)}"


async def create(server: Any, content: str, user_id: str = "u1", **fields: Any) -> pb.Memory:
    values: dict[str, Any] = {"memory_type": FACT, "content": content} | fields
    answer = await server.stub.CreateMemory(
        pb.CreateMemoryRequest(user_id=user_id, request_id=fresh(), memory=pb.Memory(**values))
    )
    assert answer.created
    return answer.memory  # type: ignore[no-any-return]


async def update(server: Any, memory: pb.Memory, *paths: str, **fields: Any) -> pb.Memory:
    values: dict[str, Any] = {"memory_id": memory.memory_id, "version": memory.version} | fields
    request = pb.UpdateMemoryRequest(
        user_id=memory.user_id, request_id=fresh(), memory=pb.Memory(**values)
    )
    request.update_mask.paths.extend(paths)
    return (await server.stub.UpdateMemory(request)).memory  # type: ignore[no-any-return]


async def listed(server: Any, user_id: str = "u1", **fields: Any) -> list[pb.Memory]:
    memories: list[pb.Memory] = []
    request = pb.ListMemoriesRequest(user_id=user_id, **fields)
    while True:
        page = await server.stub.ListMemories(request)
        memories.extend(page.memories)
        if not page.next_page_token:
            return memories
        request.page_token = page.next_page_token


async def retrieve(server: Any, query: str, user_id: str = "u1", **fields: Any) -> Any:
    return await server.stub.Retrieve(pb.RetrieveRequest(user_id=user_id, query=query, **fields))


async def failure(call: Any) -> Failure:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return read_failure(caught.value)


async def test_a_memory_is_created_read_and_found(memory_server: Any) -> None:
    made = await create(memory_server, "Likes green tea.", memory_type=PREFERENCE)
    got = await memory_server.stub.GetMemory(
        pb.GetMemoryRequest(user_id="u1", memory_id=made.memory_id)
    )
    assert got.memory.content == "Likes green tea."
    assert got.memory.title == "Likes green tea."
    found = await retrieve(memory_server, "green tea", min_revision=made.revision)
    assert [item.memory.memory_id for item in found.items] == [made.memory_id]
    assert not found.degraded


async def test_zero_is_stored_as_zero_and_no_threshold_is_none(memory_server: Any) -> None:
    made = await create(memory_server, "x", importance=0.0, confidence=0.0, is_explicit=False)
    assert made.HasField("importance")
    assert (made.importance, made.confidence, made.is_explicit) == (0.0, 0.0, False)
    found = await retrieve(memory_server, "x", min_relevance=0.0)
    assert len(found.items) == 1


async def test_every_text_comes_back_byte_for_byte(memory_server: Any) -> None:
    text = "🙂👩‍🚀 喜欢茶 e\u0301 \u202e\ufeff\u2028 \r\n\t 'quote' \"x\" \\ %_ ${y}"
    made = await create(
        memory_server,
        text,
        user_id="🙂👩‍🚀",
        title="标题 👩‍🚀",
        speaker="安",
        conversation_id="c'\"",
        event_ids=["e👩‍🚀"],
        metadata={"k🙂": [text, {"n": None, "b": True, "f": 0.5}]},
    )
    (row,) = await listed(memory_server, "🙂👩‍🚀")
    for memory in (made, row):
        assert memory.content == text
        assert memory.title == "标题 👩‍🚀"
        assert memory.speaker == "安"
        assert list(memory.event_ids) == ["e👩‍🚀"]
        assert MessageToDict(memory.metadata) == {
            "k🙂": [text, {"n": None, "b": True, "f": 0.5}],
        }


@pytest.mark.parametrize("nested", [{"k": {}}, {"k": []}])
async def test_the_deepest_metadata_comes_back_in_every_answer(
    memory_server: Any, nested: dict[str, Any]
) -> None:
    value: Any = 1
    for _ in range(15):
        value = {"k": value} if nested["k"] == {} else [value]
    await create(memory_server, "allergic", memory_type=CONSTRAINT, metadata={"a": value})
    (found,) = (await retrieve(memory_server, "allergic")).items
    assert MessageToDict(found.memory.metadata) == {"a": value}
    batch = pb.BatchRetrieveRequest(user_id="u1", requests=[pb.RetrieveRequest(query="allergic")])
    (result,) = (await memory_server.stub.BatchRetrieve(batch)).results
    assert MessageToDict(result.response.items[0].memory.metadata) == {"a": value}
    deeper = pb.Memory(memory_type=FACT, content="x")
    deeper.metadata.update({"a": {"b": value}})
    request = pb.CreateMemoryRequest(user_id="u1", request_id=fresh(), memory=deeper)
    refused = await failure(memory_server.stub.CreateMemory(request))
    assert [violation.field for violation in refused.violations] == ["memory.metadata"]


async def test_nul_is_removed_and_nothing_else(memory_server: Any) -> None:
    made = await create(memory_server, "a\0b", title="t\0", metadata={"k\0": "v\0"})
    assert (made.content, made.title) == ("ab", "t")
    assert MessageToDict(made.metadata) == {"k": "v"}


async def test_times_are_kept_to_the_microsecond_in_utc(memory_server: Any) -> None:
    expire = datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    made = await create(memory_server, "x", expire_time=expire, occur_time=expire)
    (row,) = await listed(memory_server)
    for memory in (made, row):
        assert memory.expire_time.ToDatetime(UTC) == expire
        assert memory.occur_time.ToDatetime(UTC) == expire


async def test_equal_content_refreshes(memory_server: Any) -> None:
    made = await create(memory_server, "Likes tea.", confidence=0.4)
    again = await memory_server.stub.CreateMemory(
        pb.CreateMemoryRequest(
            user_id="u1",
            request_id=fresh(),
            memory=pb.Memory(memory_type=FACT, content="likes  TEA."),
        )
    )
    assert not again.created
    assert again.memory.memory_id == made.memory_id
    assert again.memory.confidence == 0.95


async def test_ten_equal_creates_at_once_make_one_memory(memory_server: Any) -> None:
    requests = [
        pb.CreateMemoryRequest(
            user_id="u1",
            request_id=fresh(),
            memory=pb.Memory(memory_type=FACT, content="Lives in Oslo."),
        )
        for _ in range(10)
    ]
    answers = await asyncio.gather(*map(memory_server.stub.CreateMemory, requests))
    assert len({answer.memory.memory_id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert len(await listed(memory_server)) == 1


async def test_chinese_memories_are_three_memories(memory_server: Any) -> None:
    hashes = {
        (await create(memory_server, text)).content_hash
        for text in ("喜欢茶", "住在海边", "会弹琴")
    }
    assert len(hashes) == 3


async def test_a_batch_gives_each_item_its_outcome(memory_server: Any) -> None:
    request = pb.BatchCreateMemoriesRequest(user_id="u1", request_id=fresh())
    request.memories.extend(
        pb.Memory(memory_type=FACT, content=f"Fact {number}.") for number in range(120)
    )
    request.memories.add(content="no type")
    request.memories.add(memory_type=FACT, content="Fact 0.")
    request.memories.add(memory_type=FACT, content="secret", sensitivity_level=2)
    answer = await memory_server.stub.BatchCreateMemories(request)
    assert len(answer.results) == 123
    assert all(result.created for result in answer.results[:120])
    bad, same, gated = answer.results[120:]
    assert (bad.error.index, bad.error.reason) == (120, "INVALID_FIELD")
    assert "memories[120].memory_type" in bad.error.message
    assert same.memory.memory_id == answer.results[0].memory.memory_id
    assert (gated.error.code, gated.error.reason) == (9, "SETTINGS_FORBID")
    assert await memory_server.stub.BatchCreateMemories(request) == answer
    assert len(await listed(memory_server)) == 120


async def test_a_batch_whose_answer_would_be_too_large_says_so_for_the_rest(
    memory_server_on_sqlite: Any,
) -> None:
    memory_server = memory_server_on_sqlite
    request = pb.BatchCreateMemoriesRequest(user_id="u1", request_id=fresh())
    request.memories.extend(
        pb.Memory(memory_type=FACT, content=f"{number} {LONG}") for number in range(235)
    )
    assert request.ByteSize() < 4 * 1024 * 1024
    answer = await memory_server.stub.BatchCreateMemories(request)
    stored = [result for result in answer.results if result.HasField("memory")]
    refused = [result for result in answer.results if result.HasField("error")]
    assert answer.ByteSize() < 3.5 * 1024 * 1024
    assert len(stored) + len(refused) == 235
    assert refused
    assert {result.error.reason for result in refused} == {"RESPONSE_BYTES"}
    assert len(await listed(memory_server)) == len(stored)


async def test_an_update_changes_what_its_mask_names_only(memory_server: Any) -> None:
    made = await create(
        memory_server, "Likes tea.", importance=0.9, confidence=0.8, metadata={"k": "v"}
    )
    after = await update(memory_server, made, "content", content="Likes coffee.", importance=0.1)
    assert after.content == "Likes coffee."
    assert after.content_hash != made.content_hash
    assert (after.importance, after.confidence) == (0.9, 0.8)
    assert MessageToDict(after.metadata) == {"k": "v"}
    assert after.create_time == made.create_time
    assert after.version == made.version + 1
    assert after.revision > made.revision
    found = await retrieve(memory_server, "coffee", min_revision=after.revision)
    assert [item.memory.content for item in found.items] == ["Likes coffee."]


async def test_a_deleted_memory_is_not_updated(memory_server: Any) -> None:
    made = await create(memory_server, "Likes tea.")
    request = pb.DeleteMemoryRequest(user_id="u1", request_id=fresh(), memory_id=made.memory_id)
    gone = (await memory_server.stub.DeleteMemory(request)).memory
    refused = await failure(update(memory_server, gone, "title", title="new"))
    assert refused.code is grpc.StatusCode.FAILED_PRECONDITION
    assert refused.reason == "MEMORY_NOT_IN_USE"


async def test_a_stale_update_is_aborted_and_a_double_one_exists_already(
    memory_server: Any,
) -> None:
    made = await create(memory_server, "Likes tea.")
    other = await create(memory_server, "Likes coffee.")
    await update(memory_server, made, "title", title="new")
    stale = await failure(update(memory_server, made, "title", title="newer"))
    assert (stale.code, stale.reason) == (grpc.StatusCode.ABORTED, "STALE_VERSION")
    equal = await failure(update(memory_server, other, "content", content="likes tea."))
    assert (equal.code, equal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "EQUAL_MEMORY")


async def test_an_archived_memory_is_listed_and_not_recalled(memory_server: Any) -> None:
    made = await create(memory_server, "Likes tea.", memory_type=CONSTRAINT)
    after = await update(memory_server, made, "status", status=pb.MEMORY_STATUS_ARCHIVED)
    assert after.status == pb.MEMORY_STATUS_ARCHIVED
    assert not (await retrieve(memory_server, "tea")).items
    archived = await listed(memory_server, statuses=[pb.MEMORY_STATUS_ARCHIVED])
    assert [memory.memory_id for memory in archived] == [made.memory_id]


async def test_a_deleted_memory_is_never_recalled_until_it_is_restored(memory_server: Any) -> None:
    made = await create(memory_server, "Likes tea.", memory_type=CONSTRAINT)
    ids = {"user_id": "u1", "memory_id": made.memory_id}
    deleted = await memory_server.stub.DeleteMemory(
        pb.DeleteMemoryRequest(request_id=fresh(), **ids)
    )
    assert deleted.memory.status == pb.MEMORY_STATUS_DELETED
    again = await memory_server.stub.DeleteMemory(pb.DeleteMemoryRequest(request_id=fresh(), **ids))
    assert again.memory.version == deleted.memory.version
    assert not (await retrieve(memory_server, "tea")).items
    restored = await memory_server.stub.RestoreMemory(
        pb.RestoreMemoryRequest(request_id=fresh(), **ids)
    )
    assert restored.memory.status == pb.MEMORY_STATUS_ACTIVE
    assert len((await retrieve(memory_server, "tea")).items) == 1


async def test_lists_are_newest_first_complete_and_filtered(memory_server: Any) -> None:
    made = [await create(memory_server, f"Fact {number} of Oslo.") for number in range(7)]
    await create(memory_server, "Never nuts.", memory_type=CONSTRAINT)
    ids = [memory.memory_id for memory in await listed(memory_server, page_size=3)]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == 8
    some = await listed(memory_server, page_size=2, text="of  OSLO", memory_types=[FACT])
    assert [memory.memory_id for memory in some] == [m.memory_id for m in reversed(made)]
    assert await listed(memory_server, text="%") == []


async def test_many_are_given_by_id_in_the_order_asked(memory_server: Any) -> None:
    a, b = await create(memory_server, "a"), await create(memory_server, "b")
    answer = await memory_server.stub.BatchGetMemories(
        pb.BatchGetMemoriesRequest(user_id="u1", memory_ids=[b.memory_id, "none", a.memory_id])
    )
    assert [memory.content for memory in answer.memories] == ["b", "a"]


async def test_settings_hide_and_refuse(memory_server: Any) -> None:
    await create(memory_server, "Likes tea.", memory_type=CONSTRAINT)
    request = pb.UpdateUserSettingsRequest(user_id="u1", request_id=fresh())
    request.settings.disabled_types.append(CONSTRAINT)
    request.settings.retention.FromTimedelta(timedelta(days=30))
    request.update_mask.paths.extend(["disabled_types", "retention"])
    answer = await memory_server.stub.UpdateUserSettings(request)
    assert answer.revision == 2
    got = await memory_server.stub.GetUserSettings(pb.GetUserSettingsRequest(user_id="u1"))
    assert got.settings == answer.settings
    assert got.settings.memory_enabled
    assert not (await retrieve(memory_server, "tea")).items
    refused = await failure(create(memory_server, "Never nuts.", memory_type=CONSTRAINT))
    assert (refused.code, refused.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "SETTINGS_FORBID",
    )
    assert len(await listed(memory_server)) == 1


async def test_stats_count_what_is_stored(memory_server: Any) -> None:
    await create(memory_server, "a")
    stats = await memory_server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))
    assert stats.revision == 1
    assert stats.active_by_type["fact"] == 1
    assert stats.memories_by_status["active"] == 1
    assert not stats.jobs_by_state


async def test_a_batch_of_queries_has_an_answer_or_error_each(serve_memory: Any) -> None:
    async with serve_memory(retrieve_timeout=2) as memory_server:
        await create(memory_server, "Likes green tea.")
        await _queried(memory_server)


async def _queried(memory_server: Any) -> None:
    request = pb.BatchRetrieveRequest(user_id="u1")
    request.requests.add(query="green tea")
    request.requests.add(query="green tea", limit=-1)
    request.requests.add(query="green tea", min_revision=99)
    found, bad, late = (await memory_server.stub.BatchRetrieve(request)).results
    assert len(found.response.items) == 1
    assert (bad.error.index, bad.error.reason) == (1, "INVALID_FIELD")
    assert (late.error.code, late.error.reason) == (10, "REVISION_NOT_REACHED")


async def test_the_index_is_told_and_forgets(memory_server: Any) -> None:
    made = await create(memory_server, "Likes tea.")
    await _until(memory_server, {made.memory_id})
    await memory_server.stub.DeleteMemory(
        pb.DeleteMemoryRequest(user_id="u1", request_id=fresh(), memory_id=made.memory_id)
    )
    await _until(memory_server, set())


async def _until(server: Any, wanted: set[str]) -> None:
    for _ in range(600):
        if await server.app.index.ids("u1") == wanted:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"the index was not told: {wanted}")
