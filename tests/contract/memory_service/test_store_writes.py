"""What MemoryWriter and Transaction promise."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memory_service.domain.errors import (
    EqualMemoryExists,
    MemoryIdTaken,
    MemoryNotAllowed,
    MemoryNotFound,
    RequestIdReused,
)
from memory_service.domain.model import (
    IndexState,
    Memory,
    MemoryStatus,
    MemoryType,
    Role,
    UserSettings,
)
from memory_service.domain.text import content_hash, normalize
from memory_service.ports import MemoryFilter, RequestKey, Transaction, Vector
from tests.builders.memories import NOW, memory
from tests.contract.memory_service.memory_stores import Stores, changed, created

VECTOR = np.eye(1, 512, dtype=np.float32)[0]
OTHER = np.eye(2, 512, dtype=np.float32)[1]


def saying(row: Memory, words: str) -> Memory:
    return replace(
        row,
        content=words,
        normalized_content=normalize(words),
        content_hash=content_hash(row.memory_type, words),
        version=row.version + 1,
    )


async def stored(stores: Stores, user_id: str = "u1") -> list[Memory]:
    return list(await stores.reader.page(user_id, MemoryFilter(), before="", limit=500))


async def vector_of(stores: Stores, memory_id: str, fingerprint: str = "use") -> Vector | None:
    (row,) = await stores.reader.load("u1", [memory_id], fingerprint=fingerprint)
    return row.vector


async def test_each_transaction_raises_the_revision_and_rows_carry_it(stores: Stores) -> None:
    (first,) = await stores.keep(memory("m1", index_state=IndexState.SYNCED, revision=77))
    assert (first.revision, first.index_state) == (1, IndexState.PENDING)
    second, third = await stores.keep(memory("m2"), memory("m3"))
    assert (second.revision, third.revision) == (2, 2)
    again = await stores.change(first, replace(first, title="new", version=2))
    assert (again.revision, again.version) == (3, 2)
    assert sorted((row.memory_id, row.revision) for row in await stored(stores)) == [
        ("m1", 3),
        ("m2", 2),
        ("m3", 2),
    ]


async def test_the_transaction_sees_its_own_changes(stores: Stores) -> None:
    def work(transaction: Transaction) -> None:
        assert transaction.state.revision == 1
        assert transaction.get("m1") is None
        row = transaction.put(created(memory("m1")))
        assert transaction.get("m1") == row
        assert transaction.find_active(memory("m2", row.content)) == row
        renamed = transaction.put(changed(row, replace(row, title="new", version=2)))
        assert transaction.get("m1") == renamed
        settings = UserSettings(
            implicit_memory_enabled=False,
            sensitive_memory_enabled=True,
            disabled_types=frozenset({MemoryType.FACT, MemoryType.TODO_HINT}),
            retention=timedelta(days=30, microseconds=1),
            verbatim_turns_enabled=True,
        )
        assert transaction.set_settings(settings).settings == settings
        assert transaction.state.settings == settings

    await stores.write(work)


async def test_another_user_s_memory_is_not_there(stores: Stores) -> None:
    (theirs,) = await stores.keep(memory("m1", user_id="u2"))

    def work(transaction: Transaction) -> None:
        assert transaction.get("m1") is None
        assert transaction.find_active(theirs) is None
        with pytest.raises(MemoryNotFound):
            transaction.put(changed(theirs, theirs))
        with pytest.raises(MemoryNotFound):
            transaction.put(changed(theirs, replace(theirs, user_id="u1", title="mine")))
        with pytest.raises(MemoryIdTaken):
            transaction.put(created(replace(theirs, user_id="u1", title="mine")))

    await stores.write(work, "u1")
    assert await stored(stores, "u2") == [theirs]
    assert await stored(stores, "u1") == []


async def test_an_equal_active_memory_is_refused_and_the_transaction_goes_on(
    stores: Stores,
) -> None:
    tea, cocoa = await stores.keep(memory("m1", "Likes tea"), memory("m2", "Likes cocoa"))

    def work(transaction: Transaction) -> None:
        with pytest.raises(EqualMemoryExists):
            transaction.put(created(memory("m3", "likes  TEA")))
        with pytest.raises(EqualMemoryExists):
            transaction.put(changed(cocoa, saying(cocoa, "Likes tea")))
        transaction.put(created(memory("m4", "Likes milk")))

    await stores.write(work)
    assert [row.content for row in await stored(stores)] == [
        "Likes milk",
        "Likes cocoa",
        "Likes tea",
    ]
    assert tea.revision == 1


async def test_equal_words_are_other_memories_in_another_scope_type_status_or_turn(
    stores: Stores,
) -> None:
    rows = [
        memory("m1", "Likes tea"),
        memory("m2", "Likes tea", memory_type=MemoryType.PREFERENCE),
        memory("m3", "Likes tea", assistant_id="a1"),
        memory("m4", "Likes tea", assistant_id="a1", run_id="r1"),
        memory("m5", "Likes tea", assistant_id="A1", run_id="r1 "),
        memory("m6", "Likes tea", status=MemoryStatus.SUPERSEDED),
        memory("m7", "Likes tea", status=MemoryStatus.SUPERSEDED),
        memory("m8", "Likes tea", is_verbatim=True, turn_id="t1", occur_time=NOW),
        memory("m9", "Likes tea", is_verbatim=True, turn_id="t2", occur_time=NOW),
        memory(
            *("ma", "Likes tea"),
            is_verbatim=True,
            turn_id="t2",
            occur_time=NOW,
            role=Role.ASSISTANT,
        ),
    ]
    await stores.keep(*rows)

    def work(transaction: Transaction) -> None:
        for row in rows:
            found = transaction.find_active(row)
            expected = "m1" if row.status is MemoryStatus.SUPERSEDED else row.memory_id
            assert found is not None
            assert found.memory_id == expected

    await stores.write(work)


async def test_chinese_texts_have_their_own_keys(stores: Stores) -> None:
    await stores.keep(memory("m1", "喜欢茶"), memory("m2", "住在海边"), memory("m3", "会弹琴"))
    assert len({row.content_hash for row in await stored(stores)}) == 3


async def test_a_put_aside_memory_leaves_its_place_to_an_equal_one(stores: Stores) -> None:
    (old,) = await stores.keep(memory("m1", "Likes tea"))
    archived = await stores.change(old, replace(old, status=MemoryStatus.ARCHIVED, version=2))
    await stores.keep(memory("m2", "Likes tea"))
    with pytest.raises(EqualMemoryExists):
        await stores.change(archived, replace(archived, status=MemoryStatus.ACTIVE, version=3))
    assert [row.status for row in await stored(stores)] == ["active", "archived"]


async def test_an_embedding_goes_when_the_indexed_text_changes_and_only_then(
    stores: Stores,
) -> None:
    (row,) = await stores.keep(memory("m1", "Likes tea"), vector=VECTOR)
    row = await stores.change(row, replace(row, title="Tea", importance=1.0, version=2))
    assert await vector_of(stores, "m1") is not None
    row = await stores.change(row, replace(row, speaker="Ann", version=3))
    assert await vector_of(stores, "m1") is None
    row = await stores.change(row, saying(row, "Likes milk"), OTHER)
    np.testing.assert_allclose(await vector_of(stores, "m1"), OTHER, atol=1e-3)  # type: ignore[arg-type]
    await stores.change(row, replace(row, importance=0.1, version=5), VECTOR)
    np.testing.assert_allclose(await vector_of(stores, "m1"), VECTOR, atol=1e-3)  # type: ignore[arg-type]


async def test_settings_are_kept_and_raise_the_revision(stores: Stores) -> None:
    settings = UserSettings(
        memory_enabled=False,
        implicit_memory_enabled=False,
        sensitive_memory_enabled=True,
        disabled_types=frozenset({MemoryType.FACT}),
        retention=timedelta(days=400, microseconds=3),
        verbatim_turns_enabled=True,
    )
    await stores.allow(settings)
    await stores.allow(replace(settings, retention=None), "u2")
    seen: list[object] = []
    await stores.write(lambda transaction: seen.append(transaction.state))
    await stores.write(lambda transaction: seen.append(transaction.state), "u2")
    first, second = seen
    assert (first.revision, first.settings) == (2, settings)  # type: ignore[attr-defined]
    assert second.settings.retention is None  # type: ignore[attr-defined]


async def test_a_refused_request_leaves_nothing(stores: Stores) -> None:
    key = RequestKey("r1", "CreateMemory", b"d")

    def refusing(transaction: Transaction) -> bytes:
        transaction.put(created(memory("m1")), VECTOR, "use")
        transaction.set_settings(UserSettings(memory_enabled=False))
        raise MemoryNotAllowed

    with pytest.raises(MemoryNotAllowed):
        await stores.writer.once("u1", key, refusing)
    assert await stored(stores) == []
    assert (await stores.reader.stats("u1")).revision == 0
    assert await stores.outbox.depth() == 0
    assert await stores.writer.once("u1", key, lambda _: b"kept now") == b"kept now"
    assert (await stores.reader.stats("u1")).revision == 1


async def test_the_same_request_gives_the_same_answer_and_happens_once(stores: Stores) -> None:
    key = RequestKey("r1", "CreateMemory", b"d")
    answer = b"\0\xff\xfe answer" * 20_000

    def work(transaction: Transaction) -> bytes:
        transaction.put(created(memory("m1")))
        return answer

    assert await stores.writer.once("u1", key, work) == answer
    assert await stores.writer.once("u1", key, work) == answer
    assert await stores.writer.once("u1", key, lambda _: b"never") == answer
    assert (await stores.reader.stats("u1")).revision == 1


@pytest.mark.parametrize(
    "other", [RequestKey("r1", "CreateMemory", b"e"), RequestKey("r1", "DeleteMemory", b"d")]
)
async def test_a_request_id_stands_for_one_rpc_and_body(stores: Stores, other: RequestKey) -> None:
    await stores.writer.once("u1", RequestKey("r1", "CreateMemory", b"d"), lambda _: b"1")
    with pytest.raises(RequestIdReused):
        await stores.writer.once("u1", other, lambda _: b"2")
    assert (await stores.reader.stats("u1")).revision == 1
    assert await stores.writer.once("u2", other, lambda _: b"3") == b"3"
    upper = RequestKey("R1", "CreateMemory", b"d")
    assert await stores.writer.once("u1", upper, lambda _: b"4") == b"4"


async def test_touching_changes_neither_version_nor_revision_and_never_goes_back(
    stores: Stores,
) -> None:
    (row,) = await stores.keep(memory("m1"))
    await stores.writer.touch({"m1": NOW, "unknown": NOW})
    await stores.writer.touch({"m1": NOW - timedelta(hours=1)})
    assert await stored(stores) == [replace(row, last_access_time=NOW)]
    await stores.writer.touch({"m1": NOW + timedelta(hours=1)})
    (touched,) = await stored(stores)
    assert touched.last_access_time == NOW + timedelta(hours=1)
    await stores.writer.touch({})


async def test_parallel_creates_of_the_same_memory_make_one(stores: Stores) -> None:
    def creating(number: int) -> Callable[[Transaction], bytes]:
        def work(transaction: Transaction) -> bytes:
            row = memory(f"m{number}", "Likes tea")
            found = transaction.find_active(row)
            return (found or transaction.put(created(row))).memory_id.encode()

        return work

    answers = await asyncio.gather(
        *(
            stores.writer.once("u1", RequestKey(f"r{n}", "CreateMemory", b"d"), creating(n))
            for n in range(10)
        )
    )
    (row,) = await stored(stores)
    assert set(answers) == {row.memory_id.encode()}
    assert (await stores.reader.stats("u1")).revision == 10


async def test_parallel_copies_of_a_request_happen_once(stores: Stores) -> None:
    calls = iter(range(100))

    def work(transaction: Transaction) -> bytes:
        number = next(calls)
        transaction.put(created(memory(f"m{number}")))
        return str(number).encode()

    answers = await asyncio.gather(
        *(stores.writer.once("u1", RequestKey("r", "CreateMemory", b"d"), work) for _ in range(10))
    )
    assert len(set(answers)) == 1
    assert len(await stored(stores)) == 1


async def test_parallel_first_writes_of_many_users_all_succeed(stores: Stores) -> None:
    await asyncio.gather(
        *(stores.keep(memory(f"m{n}", user_id=f"user{n % 16}")) for n in range(32))
    )
    for number in range(16):
        assert (await stores.reader.stats(f"user{number}")).revision == 2


async def test_eight_writers_of_one_user_lose_nothing(stores: Stores) -> None:
    async def writer(name: int) -> None:
        for number in range(50):
            await stores.keep(memory(f"w{name}-{number}"))

    await asyncio.gather(*(writer(name) for name in range(8)))
    stats = await stores.reader.stats("u1")
    assert (stats.revision, dict(stats.memories_by_status)) == (400, {"active": 400})


async def test_whether_an_answer_is_kept_is_known_without_the_request(stores: Stores) -> None:
    key = RequestKey("r1", "R", b"digest")
    assert not await stores.writer.answered("u1", "r1")
    await stores.writer.once("u1", key, lambda _: b"")
    assert await stores.writer.answered("u1", "r1")
    assert not await stores.writer.answered("u2", "r1")
