"""Export and import, in memory."""

import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_service.domain.errors import DomainError, InvalidRequest, RequestIdReused
from memory_service.domain.model import Memory, MemoryStatus, MemoryType, Operation, UserSettings
from memory_service.domain.transfer import Imported, brought_back, moved
from memory_service.domain.write import NewMemory, Outcome, Refused
from memory_service.ports import RequestKey, Transaction
from memory_service.remember import exporting, importing
from memory_service.remember.embedding import Embedding
from memory_service.remember.exporting import Export
from memory_service.remember.importing import Import, ImportAnswer, Item
from tests.builders.memories import NOW, memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.memory_store import FakeMemoryStore

HOUR = timedelta(hours=1)


def _part(outcomes: Mapping[int, Outcome]) -> bytes:
    words = (
        "failed" if isinstance(one, Refused) else "created" if one.created else "refreshed"
        for one in outcomes.values()
    )
    return "".join(f"{place}:{word} " for place, word in zip(outcomes, words, strict=True)).encode()


ANSWER = ImportAnswer(empty=b"", part=_part, join=lambda one, other: one + other)


def imported(row: Memory) -> Imported:
    """Give what a codec makes of an exported memory."""
    names = NewMemory.__dataclass_fields__
    return Imported(
        new=NewMemory(**{name: getattr(row, name) for name in names}),
        memory_id=row.memory_id,
        status=row.status,
        superseded_by=row.superseded_by,
        last_access_time=row.last_access_time,
        create_time=row.create_time,
        update_time=row.update_time,
        version=row.version,
    )


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = FakeMemoryStore(clock=self.clock, new_id=FakeIds())
        self.embedder = FakeEmbedder()
        self.importing = Import(
            self.store,
            Embedding(self.embedder, timeout=1.0),
            clock=self.clock,
            new_id=FakeIds(),
        )

    async def take(
        self, *rows: Memory | DomainError, request_id: str = "r", user_id: str = "u1"
    ) -> str:
        async def items() -> AsyncIterator[Item]:
            for row in rows:
                if isinstance(row, Memory):
                    yield Item(imported(row), repr(row).encode())
                else:
                    yield Item(row, b"bad")

        kept = await self.importing.run(user_id, request_id, items(), ANSWER)
        return kept.decode().strip()

    @property
    def rows(self) -> dict[str, Memory]:
        return self.store.tables.memories


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(importing, "CHUNK", 2)
    return World()


# ---------------------------------------------------------------- import


async def test_ids_status_times_and_version_are_kept(world: World) -> None:
    row = memory(
        "m1",
        age=9 * HOUR,
        status=MemoryStatus.SUPERSEDED,
        version=7,
        metadata={"k": 1},
        expire_time=NOW + HOUR,
    )
    row = replace(row, superseded_by="m2", last_access_time=NOW - HOUR, title="T")
    assert await world.take(row) == "0:created"
    stored = world.rows["m1"]
    assert replace(stored, revision=0) == row
    ((_, change),) = world.store.tables.history.values()
    assert (change.operation, change.reason) == (Operation.CREATE, "import")
    assert change.create_time == world.clock()


async def test_active_memories_are_embedded_and_others_are_not(world: World) -> None:
    await world.take(memory("m1"), memory("m2", status=MemoryStatus.ARCHIVED))
    assert set(world.store.tables.vectors) == {("m1", world.embedder.fingerprint)}


async def test_without_id_and_times_it_is_a_new_memory_of_now(world: World) -> None:
    async def items() -> AsyncIterator[Item]:
        new = NewMemory(user_id="u1", memory_type=MemoryType.FACT, content="Likes tea.")
        yield Item(Imported(new=new), b"x")

    await world.importing.run("u1", "r", items(), ANSWER)
    (row,) = world.rows.values()
    assert row.memory_id
    assert (row.create_time, row.update_time, row.version) == (NOW, NOW, 1)


async def test_sent_again_under_any_request_id_it_doubles_and_changes_nothing(
    world: World,
) -> None:
    rows = [
        *(memory(f"m{n}", age=HOUR) for n in range(3)),
        *(memory(f"s{status}", status=status, age=HOUR) for status in MemoryStatus),
    ]
    created = await world.take(*rows)
    before = dict(world.rows)
    assert created.count("created") == 7
    assert await world.take(*rows) == created
    assert (await world.take(*rows, request_id="r2")).count("refreshed") == 7
    assert world.rows == before


async def test_the_same_request_with_other_items_stores_nothing(world: World) -> None:
    await world.take(memory("m1"), memory("m2"))
    for rows in ([memory("m3")], [memory(f"m{n}") for n in (1, 2, 3)], [memory("m1")]):
        with pytest.raises(RequestIdReused):
            await world.take(*rows)
    assert set(world.rows) == {"m1", "m2"}


async def test_an_import_that_broke_off_goes_on_where_it_ended(world: World) -> None:
    rows = [memory(f"m{n}") for n in range(5)]
    broken = RuntimeError("the client has left")

    async def items() -> AsyncIterator[Item]:
        for row in rows[:3]:
            yield Item(imported(row), repr(row).encode())
        raise broken

    with pytest.raises(RuntimeError):
        await world.importing.run("u1", "r", items(), ANSWER)
    assert set(world.rows) == {"m0", "m1"}
    assert (await world.take(*rows)).count("created") == 5
    assert {row.version for row in world.rows.values()} == {1}


async def test_a_refused_item_does_not_stop_the_others(world: World) -> None:
    bad = InvalidRequest([])
    assert await world.take(memory("m1"), bad, memory("m2")) == "0:created 1:failed 2:created"


async def test_nothing_is_an_import_too(world: World) -> None:
    assert await world.take() == ""
    assert await world.take() == ""


async def test_settings_refuse_no_import(world: World) -> None:
    off = UserSettings(memory_enabled=False, disabled_types=frozenset({MemoryType.FACT}))
    world.store.seed("u1", settings=off)
    assert await world.take(memory("m1", sensitivity_level=2)) == "0:created"


async def test_an_id_of_another_user_is_left_alone_and_another_one_taken_each_time_the_same(
    world: World,
) -> None:
    world.store.seed("u2", memory("m1", "Theirs.", user_id="u2"))
    mine = memory("m1", status=MemoryStatus.SUPERSEDED, title="T", age=HOUR)
    mine = replace(mine, superseded_by="m2")
    assert await world.take(mine) == "0:created"
    assert await world.take(mine, request_id="r2") == "0:refreshed"
    assert world.rows["m1"].content == "Theirs."
    (row,) = world.store.tables.of("u1")
    assert row == replace(moved(mine), revision=row.revision)
    later = replace(mine, update_time=NOW)
    await world.take(later, request_id="r3")
    (row,) = world.store.tables.of("u1")
    assert row == replace(moved(later), revision=row.revision, version=2)


async def test_an_equal_active_memory_is_refreshed(world: World) -> None:
    world.store.seed("u1", memory("m1", "Likes tea.", confidence=0.2))
    assert await world.take(memory("m2", "likes TEA.", confidence=0.9)) == "0:refreshed"
    assert world.rows["m1"].confidence == 0.9
    assert world.rows["m1"].update_time == NOW
    assert set(world.rows) == {"m1"}


async def test_an_active_memory_of_this_id_is_no_second_one_beside_an_equal_one(
    world: World,
) -> None:
    world.store.seed("u1", memory("m1", "Likes tea."), memory("m2", status=MemoryStatus.DELETED))
    assert await world.take(memory("m2", "Likes tea.")) == "0:refreshed"
    assert world.rows["m2"].status is MemoryStatus.DELETED


async def test_of_two_versions_the_later_one_stays(world: World) -> None:
    world.store.seed("u1", memory("m1", "Now.", version=3), memory("m2", "Old.", age=2 * HOUR))
    await world.take(memory("m1", "Before.", age=HOUR), memory("m2", "New.", age=HOUR))
    assert (world.rows["m1"].content, world.rows["m1"].version) == ("Now.", 3)
    assert (world.rows["m2"].content, world.rows["m2"].version) == ("New.", 2)
    assert world.rows["m2"].update_time == NOW - HOUR


async def test_a_deleted_memory_comes_back(world: World) -> None:
    world.store.seed("u1", memory("m1", status=MemoryStatus.DELETED))
    assert await world.take(memory("m1", age=HOUR)) == "0:refreshed"
    assert world.rows["m1"].status is MemoryStatus.ACTIVE
    (_, last) = list(world.store.tables.history.values())[-1]
    assert (last.operation, last.reason) == (Operation.RESTORE, "import")


def test_a_moved_id_keeps_the_time_of_the_old_one_and_is_like_ours() -> None:
    old = str(uuid.UUID("01890a5d-ac96-774b-bcce-b302099a8057"))
    new = moved(memory(old, user_id="u1")).memory_id
    assert new != old
    assert new[:13] == old[:13]
    assert uuid.UUID(new).version == 7
    assert uuid.UUID(new).variant == uuid.RFC_4122
    assert moved(memory(old, user_id="u2")).memory_id != new
    assert uuid.UUID(moved(memory("odd ' id")).memory_id).version == 7


def test_what_did_not_change_later_stays_as_it_is() -> None:
    own = memory("m1")
    assert brought_back(own, replace(own, content="other")) is own
    gone = replace(own, status=MemoryStatus.DELETED)
    assert brought_back(gone, gone) is gone


# ---------------------------------------------------------------- export


async def test_an_export_gives_every_status_oldest_first_and_nothing_of_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "_AT_ONCE", 3)
    ids = [f"m{n}" for n in range(5)]
    statuses = [*MemoryStatus, MemoryStatus.ACTIVE]
    world.store.seed("u1", *map(_with_status, reversed(ids), statuses))
    world.store.seed("u2", memory("n1", user_id="u2"))
    export = Export(world.store)
    given = [one async for one in export.each("u1", lambda row: row.memory_id.encode())]
    assert given == [one.encode() for one in ids]
    assert [one async for one in export.each("u3", lambda _row: b"x")] == []


def _with_status(memory_id: str, status: MemoryStatus) -> Memory:
    return memory(memory_id, status=status)


async def test_an_export_is_as_of_the_moment_it_began(world: World) -> None:
    world.store.seed("u1", *(memory(f"m{n}") for n in range(3)))
    export = Export(world.store).each("u1", lambda row: row.content.encode())
    first = await anext(export)
    world.store.seed("u1", memory("m2", "changed"), memory("m9"))
    rest = [one async for one in export]
    assert [first, *rest] == [f"Content of m{n}.".encode() for n in range(3)]


async def test_an_export_that_cannot_be_encoded_leaves_nothing_open(world: World) -> None:
    world.store.seed("u1", memory("m1"))

    def fail(_row: Memory) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await anext(Export(world.store).each("u1", fail))


async def test_whether_a_request_was_answered_is_known(world: World) -> None:
    assert not await world.store.answered("u1", "r")
    await world.store.once("u1", RequestKey("r", "R", b""), _nothing)
    assert await world.store.answered("u1", "r")


def _nothing(_tx: Transaction) -> bytes:
    return b""
