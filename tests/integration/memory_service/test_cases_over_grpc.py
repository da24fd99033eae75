"""Known traps (docs/cases.md) that only a whole service on a real database can fall into."""

import asyncio
from itertools import count
from typing import Any

import pytest

from memory_service.v1 import memory_pb2 as pb
from tests.integration.memory_service.conftest import LONG, Serve

FACT, CONSTRAINT, PREFERENCE, TODO = (
    pb.MEMORY_TYPE_FACT,
    pb.MEMORY_TYPE_CONSTRAINT,
    pb.MEMORY_TYPE_PREFERENCE,
    pb.MEMORY_TYPE_TODO_HINT,
)
_requests = count()


async def create_all(server: Any, user_id: str, memories: list[pb.Memory]) -> list[pb.Memory]:
    answer = await server.stub.BatchCreateMemories(
        pb.BatchCreateMemoriesRequest(
            user_id=user_id, request_id=f"r{next(_requests)}", memories=memories
        )
    )
    assert not [one.error for one in answer.results if one.HasField("error")]
    return [one.memory for one in answer.results]


async def delete(server: Any, memory: pb.Memory) -> None:
    await server.stub.DeleteMemory(
        pb.DeleteMemoryRequest(
            user_id=memory.user_id,
            request_id=f"r{next(_requests)}",
            memory_id=memory.memory_id,
        )
    )


async def indexed(server: Any) -> None:
    """Wait until the index was told everything and nothing is in doubt."""
    for _ in range(1200):
        if not await server.app.store.outbox.depth():
            return
        await asyncio.sleep(0.05)
    pytest.fail("the index was never told")


async def retrieve(server: Any, user_id: str, query: str, **fields: Any) -> pb.RetrieveResponse:
    request = pb.RetrieveRequest(user_id=user_id, query=query, **fields)
    return await server.stub.Retrieve(request)  # type: ignore[no-any-return]


def texts(answer: pb.RetrieveResponse) -> set[str]:
    return {item.memory.content for item in answer.items}


@pytest.mark.parametrize(
    "knobs",
    [{}, {"milvus_uri": "off"}, {"semantic": "exact"}, {"read_mode": "legacy"}],
    ids=["milvus", "off", "exact", "legacy"],
)
async def test_no_way_of_searching_brings_what_belongs_to_another(
    serve_memory: Serve, database_knobs: dict[str, Any], knobs: dict[str, Any]
) -> None:
    async with serve_memory(**database_knobs | knobs) as server:
        theirs = [
            pb.Memory(memory_type=CONSTRAINT, content="Never put peanuts into my food."),
            pb.Memory(memory_type=FACT, content="Is allergic to peanuts."),
        ]
        await create_all(server, "u2", theirs)
        await create_all(server, "u1", [pb.Memory(memory_type=FACT, content="Likes tea.")])
        for query in ("allergic to peanuts", "peanuts in food", "", "Likes tea."):
            for user_id, most in (("u1", {"Likes tea."}), ("u3", set())):
                assert texts(await retrieve(server, user_id, query)) <= most
        assert "Is allergic to peanuts." in texts(await retrieve(server, "u2", "peanuts"))


async def test_types_are_a_union_in_every_leg(memory_server: Any) -> None:
    kinds = (CONSTRAINT, PREFERENCE, FACT, TODO)
    made = [
        pb.Memory(memory_type=kind, content=f"Green tea, {number}.")
        for kind in kinds
        for number in range(3)
    ]
    await create_all(memory_server, "u1", made)
    for wanted in ([PREFERENCE], [CONSTRAINT, FACT], [TODO, FACT, PREFERENCE], [*kinds]):
        for query in ("green tea", ""):
            answer = await retrieve(memory_server, "u1", query, memory_types=wanted)
            found = {item.memory.memory_type for item in answer.items}
            searched = set(wanted) if query else set(wanted) & {CONSTRAINT, PREFERENCE}
            assert found == searched
    await indexed(memory_server)
    answer = await retrieve(memory_server, "u1", "green tea", memory_types=[CONSTRAINT, FACT])
    assert {item.memory.memory_type for item in answer.items} == {CONSTRAINT, FACT}


async def test_three_hundred_rows_are_read_at_once_and_each_is_accounted_for(
    memory_server: Any,
) -> None:
    made = [pb.Memory(memory_type=CONSTRAINT, content=f"No tea of brand {n}.") for n in range(300)]
    await create_all(memory_server, "u1", made)
    answer = await retrieve(memory_server, "u1", "tea", budgets=pb.TypeBudgets(constraint=200))
    assert len(answer.items) == 200
    assert answer.pinned_total == 300
    assert answer.dropped["type_budget"] == 100
    assert sum(answer.dropped.values()) == answer.stage_counts["allowed"] - 200


async def test_deleted_memories_take_no_places_of_live_ones(memory_server: Any) -> None:
    made = [pb.Memory(memory_type=FACT, content=f"Green tea, cup {n}.") for n in range(220)]
    *gone, live = await create_all(memory_server, "u1", made)
    await create_all(memory_server, "u2", made[:3])
    await indexed(memory_server)
    for memory in gone:
        await delete(memory_server, memory)
    # While the index still has them, and when it does not any more.
    for _ in range(2):
        answer = await retrieve(memory_server, "u1", "Green tea, cup 7.", limit=5)
        assert texts(answer) == {live.content}
        await indexed(memory_server)
    assert await memory_server.app.index.ids("u1") == {live.memory_id}
    # Another user's rows are where they were.
    assert len(await memory_server.app.index.ids("u2")) == 3
    assert len(texts(await retrieve(memory_server, "u2", "green tea"))) == 3


async def test_a_memory_without_a_direction_is_found_by_words_only(memory_server: Any) -> None:
    # The embedder that hashes words finds none here, and gives a zero vector.
    await create_all(
        memory_server,
        "u1",
        [
            pb.Memory(memory_type=FACT, content="!!! ???"),
            pb.Memory(memory_type=FACT, content="Likes green tea."),
        ],
    )
    await indexed_or_failed(memory_server)
    answer = await retrieve(memory_server, "u1", "green tea")
    assert texts(answer) == {"Likes green tea."}
    assert not answer.degraded
    stats = await memory_server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))
    states = {state: n for state, n in stats.memories_by_index_state.items() if n}
    assert states == {"failed": 1, "synced": 1}


async def indexed_or_failed(server: Any) -> None:
    for _ in range(1200):
        stats = await server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))
        if not stats.memories_by_index_state["pending"]:
            return
        await asyncio.sleep(0.05)
    pytest.fail("the index was never told")


async def test_a_list_of_long_memories_comes_in_pages_that_fit(
    memory_server_on_sqlite: Any,
) -> None:
    memory_server, sent = memory_server_on_sqlite, 0
    for _ in range(2):
        made = [pb.Memory(memory_type=FACT, content=f"{sent + n:04} {LONG}") for n in range(120)]
        await create_all(memory_server, "u1", made)
        sent += len(made)
    request = pb.ListMemoriesRequest(user_id="u1", page_size=5_000)
    seen: list[str] = []
    while True:
        page = await memory_server.stub.ListMemories(request)
        assert page.ByteSize() < 3.5 * 1024 * 1024
        assert 0 < len(page.memories) <= 200
        seen.extend(memory.content[:4] for memory in page.memories)
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == [f"{number:04}" for number in reversed(range(sent))]
