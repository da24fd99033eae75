"""Listing what happened, going back to what was, and following what happens; over fakes."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory_service.domain.errors import (
    EqualMemoryExists,
    HistoryNotKept,
    MemoryNotFound,
    VersionNotFound,
)
from memory_service.domain.model import Memory, MemoryStatus, Operation, UserSettings
from memory_service.domain.text import content_hash, normalize
from memory_service.domain.write import superseded, with_status
from memory_service.ports import RequestKey
from memory_service.remember.bells import Bells
from memory_service.remember.embedding import Embedding
from memory_service.remember.history import History
from memory_service.remember.steps import change
from memory_service.remember.watch import READ_AT_ONCE, Revision, Watch
from tests.builders.memories import NOW, memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.memory_store import FakeMemoryStore


class Room:
    def __init__(self, *, poll: float = 60.0) -> None:
        self.clock = FakeClock()
        self.store = FakeMemoryStore(clock=self.clock, new_id=FakeIds())
        self.embedder = FakeEmbedder()
        self.bells = Bells()
        self.writer = self.store
        self.store.on_change = self.bells.ring
        embedding = Embedding(self.embedder, timeout=0.05)
        self.past = History(self.store.history, self.writer, embedding, clock=self.clock)
        self.watch = Watch(self.store.history, self.bells, poll=poll)

    def keep(self, *rows: Memory) -> int:
        vectors = [(row, self.embedder.vector(row.content)) for row in rows]
        return self.store.seed("u1", *vectors, fingerprint=self.embedder.fingerprint).revision

    def row(self, memory_id: str = "m1") -> Memory:
        return self.store.tables.memories[memory_id]

    async def revert(
        self, version: int, memory_id: str = "m1", request: str = "r1", user_id: str = "u1"
    ) -> Memory:
        given: list[Memory] = []

        def encode(stored: Memory) -> bytes:
            given.append(stored)
            return b"kept"

        key = RequestKey(request, "RevertMemory", b"")
        await self.past.revert(user_id, memory_id, version, key, encode)
        return given[0] if given else self.row(memory_id)

    async def change(self, title: str) -> None:
        """Change m1 through the writer, which rings."""

        def work(tx: Any) -> None:
            before = tx.get("m1")
            tx.put(change(before, replace(before, title=title, version=before.version + 1)))

        await self.writer.change("u1", work)


def saying(row: Memory, words: str) -> Memory:
    return replace(
        row,
        content=words,
        normalized_content=normalize(words),
        content_hash=content_hash(row.memory_type, words),
        version=row.version + 1,
    )


@pytest.fixture
async def room() -> Room:
    return Room()


TEA = memory("m1", "Likes tea", title="Tea", importance=0.9, metadata={"k": 1})


async def test_a_page_has_one_change_more_if_there_are_more(room: Room) -> None:
    room.keep(TEA)
    room.keep(replace(TEA, version=2))
    room.keep(memory("m2"))
    assert len(await room.past.page("u1", "", before=0, size=2)) == 3
    assert [one.version for one in await room.past.page("u1", "m1", before=0, size=5)] == [2, 1]


async def test_an_update_is_undone_and_the_embedding_is_right(room: Room) -> None:
    room.keep(TEA)
    room.keep(replace(saying(TEA, "Likes milk"), importance=0.1, metadata={}))
    room.clock.advance(60)
    back = await room.revert(1)
    assert back == replace(TEA, version=3, revision=3, update_time=room.clock())
    key = ("m1", room.embedder.fingerprint)
    assert (room.store.tables.vectors[key] == room.embedder.vector("Likes tea")).all()
    (newest, *_) = await room.past.page("u1", "m1", before=0, size=1)
    assert (newest.operation, newest.actor, newest.reason) == (
        Operation.UPDATE,
        "user",
        "reverted",
    )


@pytest.mark.parametrize(
    ("status", "operation"),
    [
        (MemoryStatus.DELETED, Operation.DELETE),
        (MemoryStatus.ARCHIVED, Operation.ARCHIVE),
        (MemoryStatus.SUPERSEDED, Operation.SUPERSEDE),
    ],
)
async def test_any_status_is_undone_and_comes_back(
    room: Room, status: MemoryStatus, operation: Operation
) -> None:
    room.keep(TEA)
    gone = with_status(TEA, status, NOW)
    if status is MemoryStatus.SUPERSEDED:
        gone = superseded(TEA, memory("m2"))
    room.keep(gone)
    back = await room.revert(1)
    assert (back.status, back.superseded_by, back.version) == (MemoryStatus.ACTIVE, "", 3)
    again = await room.revert(2, request="r2")
    assert (again.status, again.superseded_by) == (status, gone.superseded_by)
    newest, before, *_ = await room.past.page("u1", "m1", before=0, size=4)
    assert (newest.operation, before.operation) == (operation, Operation.RESTORE)
    assert ("m1", room.embedder.fingerprint) in room.store.tables.vectors


async def test_the_memory_in_whose_place_one_comes_back_makes_way_and_both_change_back(
    room: Room,
) -> None:
    room.keep(TEA)
    room.keep(superseded(TEA, memory("m2")))
    room.keep(superseded(memory("m2", "Likes milk"), memory("m3")), memory("m3", "Likes rice"))
    back = await room.revert(1)
    assert back.status is MemoryStatus.ACTIVE
    tables = room.store.tables.memories
    assert (tables["m3"].status, tables["m3"].superseded_by) == (MemoryStatus.SUPERSEDED, "m1")
    assert tables["m3"].revision == back.revision
    assert tables["m2"].superseded_by == "m3"
    (newest, *_) = await room.past.page("u1", "m3", before=0, size=1)
    assert (newest.operation, newest.reason) == (Operation.SUPERSEDE, "reverted")


async def test_what_goes_again_lets_the_one_come_back_that_made_way_for_it(room: Room) -> None:
    room.keep(TEA)
    room.keep(superseded(TEA, memory("m2")))
    room.keep(memory("m2", "Likes milk"))
    await room.revert(1)
    again = await room.revert(2, request="r2")
    assert (again.status, again.superseded_by) == (MemoryStatus.SUPERSEDED, "m2")
    assert room.store.tables.memories["m2"].status is MemoryStatus.ACTIVE


async def test_what_comes_back_after_its_end_has_none_any_more(room: Room) -> None:
    brief = replace(TEA, expire_time=room.clock() + timedelta(hours=1))
    room.keep(brief)
    room.keep(superseded(brief, memory("m2")))
    room.keep(replace(memory("m2", "Likes milk"), expire_time=brief.expire_time))
    room.clock.advance(3600)
    back = await room.revert(1)
    assert (back.status, back.expire_time) == (MemoryStatus.ACTIVE, None)
    gone = await room.revert(2, request="r2")
    assert (gone.status, gone.expire_time) == (MemoryStatus.SUPERSEDED, brief.expire_time)
    milk = room.row("m2")
    assert (milk.status, milk.expire_time) == (MemoryStatus.ACTIVE, None)


async def test_a_memory_that_made_way_for_another_one_stays_where_it_is(room: Room) -> None:
    room.keep(TEA)
    room.keep(superseded(TEA, memory("m2")))
    room.keep(with_status(memory("m2", "Likes milk"), MemoryStatus.DELETED, NOW))
    await room.revert(1)
    assert room.store.tables.memories["m2"].status is MemoryStatus.DELETED


async def test_last_access_is_no_value_that_goes_back(room: Room) -> None:
    room.keep(TEA)
    await room.store.touch({"m1": NOW})
    assert (await room.revert(1)).last_access_time == NOW


async def test_what_another_memory_says_by_now_is_not_said_twice(room: Room) -> None:
    room.keep(TEA)
    room.keep(saying(TEA, "Likes milk"))
    room.keep(memory("m2", "likes TEA"))
    with pytest.raises(EqualMemoryExists):
        await room.revert(1)
    assert room.row().content == "Likes milk"


async def test_only_versions_of_the_users_own_memories_come_back(room: Room) -> None:
    room.keep(TEA)
    with pytest.raises(VersionNotFound):
        await room.revert(2)
    with pytest.raises(MemoryNotFound):
        await room.revert(1, "m9")
    with pytest.raises(MemoryNotFound):
        await room.revert(1, user_id="u2")


async def test_the_same_request_reverts_once(room: Room) -> None:
    room.keep(TEA)
    room.keep(saying(TEA, "Likes milk"))
    await room.revert(1)
    await room.revert(1)
    assert room.row().version == 3


async def test_a_revert_without_the_embedder_leaves_no_embedding_of_other_words(
    room: Room,
) -> None:
    room.keep(TEA)
    room.keep(saying(TEA, "Likes milk"))
    room.embedder.down = "unavailable"
    await room.revert(1)
    assert ("m1", room.embedder.fingerprint) not in room.store.tables.vectors


# ------------------------------------------------------------------ following


def numbers(revisions: Sequence[Revision]) -> list[tuple[int, list[str]]]:
    return [(one.number, [change.memory_id for change in one.changes]) for one in revisions]


async def some(stream: AsyncGenerator[Revision, None], count: int) -> list[Revision]:
    return [await anext(stream) for _ in range(count)]


async def test_a_watch_begins_with_a_sign_of_life_and_then_tells_each_revision(room: Room) -> None:
    room.keep(memory("m1"), memory("m2"))
    room.keep(memory("m3"))
    room.store.seed("u1", settings=UserSettings(sensitive_memory_enabled=True))
    async with aclosing(room.watch.revisions("u1", 0)) as stream:
        assert numbers(await some(stream, 4)) == [
            (0, []),
            (1, ["m1", "m2"]),
            (2, ["m3"]),
            (3, []),
        ]
    async with aclosing(room.watch.revisions("u1", 1)) as stream:
        assert numbers(await some(stream, 3)) == [(1, []), (2, ["m3"]), (3, [])]


async def test_a_watch_from_now_tells_what_comes_and_nothing_old(room: Room) -> None:
    room.keep(memory("m1"), memory("m2"))
    async with aclosing(room.watch.revisions("u1", None)) as stream:
        assert numbers(await some(stream, 1)) == [(1, [])]
        await room.change("new")
        assert numbers(await some(stream, 1)) == [(2, ["m1"])]


async def test_a_bell_wakes_a_watch_that_waits(room: Room) -> None:
    room.keep(memory("m1"))
    async with aclosing(room.watch.revisions("u1", None)) as stream:
        await some(stream, 1)
        waiting = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        await room.change("new")
        assert numbers([await waiting]) == [(2, ["m1"])]


async def test_a_watch_sees_what_other_processes_write_at_the_next_poll() -> None:
    room = Room(poll=0.01)
    room.keep(memory("m1"))
    async with aclosing(room.watch.revisions("u1", None)) as stream:
        await some(stream, 1)
        waiting = asyncio.create_task(anext(stream))
        room.keep(memory("m2"))
        assert numbers([await waiting]) == [(2, ["m2"])]


async def test_a_long_history_is_read_in_parts_and_told_whole(room: Room) -> None:
    count = READ_AT_ONCE + 20
    for number in range(count):
        room.keep(memory(f"m{number:03}"))
    async with aclosing(room.watch.revisions("u1", 0)) as stream:
        told = await some(stream, count + 1)
    assert [one.number for one in told] == list(range(count + 1))
    assert room.store.calls["history_news"] == 2


@pytest.mark.parametrize("after", [3, 10**9])
async def test_a_revision_that_was_never_reached_is_out_of_range(room: Room, after: int) -> None:
    room.keep(memory("m1"))
    room.keep(memory("m2"))
    with pytest.raises(HistoryNotKept):
        await anext(room.watch.revisions("u1", after))


async def test_a_revision_from_before_an_erasure_is_out_of_range(room: Room) -> None:
    room.keep(memory("m1"))
    room.store.erase("u1")
    with pytest.raises(HistoryNotKept):
        await anext(room.watch.revisions("u1", 1))
    async with aclosing(room.watch.revisions("u1", 0)) as stream:
        assert (await anext(stream)).number == 0
        assert (await anext(stream)).number == 2


async def test_a_watch_ends_when_the_user_is_erased(room: Room) -> None:
    room.keep(memory("m1"))
    async with aclosing(room.watch.revisions("u1", None)) as stream:
        await some(stream, 1)
        room.store.erase("u1")
        room.bells.ring("u1")
        with pytest.raises(HistoryNotKept):
            await anext(stream)


async def test_a_watch_of_a_user_without_memories_waits(room: Room) -> None:
    async with aclosing(room.watch.revisions("u1", None)) as stream:
        assert numbers(await some(stream, 1)) == [(0, [])]
        room.keep(memory("m1"))
        room.bells.ring("u1")
        assert numbers(await some(stream, 1)) == [(1, ["m1"])]


async def test_watches_end_when_the_service_does(room: Room) -> None:
    room.keep(memory("m1"))
    stream = room.watch.revisions("u1", None)
    await some(stream, 1)
    waiting = asyncio.create_task(anext(stream, None))
    await asyncio.sleep(0)
    room.watch.close()
    assert await waiting is None
    assert [one.number async for one in room.watch.revisions("u1", None)] == [1]


async def test_who_leaves_is_waited_for_no_more_and_others_are_not_woken(room: Room) -> None:
    listening = room.bells.listening
    with listening("u1") as one, listening("u1") as other, listening("u2") as third:
        room.bells.ring("u1")
        assert (one.is_set(), other.is_set(), third.is_set()) == (True, True, False)
    room.bells.ring("u1")
    stream = room.watch.revisions("u1", None)
    await some(stream, 1)
    await stream.aclose()
    room.bells.ring_all()
    assert not room.bells.is_awaited


async def test_recalling_rings_no_bell(room: Room) -> None:
    room.keep(TEA)
    with room.bells.listening("u1") as bell:
        await room.store.touch({"m1": NOW})
        assert not bell.is_set()
        await room.store.once("u1", RequestKey("r", "Test", b""), lambda _: b"")
        assert bell.is_set()
