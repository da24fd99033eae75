"""Erasing a user, step by step, in memory."""

from collections.abc import Callable

import numpy as np
import pytest

from memory_service.domain.erasure import Receipt, Store
from memory_service.domain.errors import RequestIdReused, StoreUnavailable
from memory_service.domain.model import UserSettings
from memory_service.ports import RequestKey, StoredRow, Transaction
from memory_service.upkeep import erase as erasing
from memory_service.upkeep.erase import Erase
from tests.builders.memories import memory
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.index import FakeVectorIndex
from tests.fakes.memory_store import FakeMemoryStore

KEY = RequestKey("r1", "EraseUser", b"u1")
VECTOR = np.eye(1, 8, dtype=np.float32)[0]


class MortalStore(FakeMemoryStore):
    """Dies after so many more transactions."""

    lives = 10**9

    async def once(
        self, user_id: str, key: RequestKey, work: Callable[[Transaction], bytes]
    ) -> bytes:
        if not self.lives:
            raise StoreUnavailable
        self.lives -= 1
        return await super().once(user_id, key, work)


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MortalStore(clock=self.clock, new_id=FakeIds())
        self.index = FakeVectorIndex()
        self.erase = Erase(self.store, self.store, self.index, index_timeout=0.01)
        self.receipts: list[Receipt] = []

    async def keep(self, user_id: str, *ids: str) -> None:
        rows = [memory(one, user_id=user_id) for one in ids]
        self.store.seed(user_id, *((row, VECTOR) for row in rows), fingerprint="f")
        await self.index.upsert([StoredRow(row, VECTOR) for row in rows])

    async def run(self, key: RequestKey = KEY) -> bytes:
        def encode(receipt: Receipt) -> bytes:
            self.receipts.append(receipt)
            return f"receipt {len(self.receipts)}".encode()

        return await self.erase.erase("u1", key, encode)

    @property
    def receipt(self) -> Receipt:
        return self.receipts[-1]


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(erasing, "CHUNK", 2)
    world = World()
    await world.keep("u1", *(f"m{n}" for n in range(5)))
    await world.keep("u2", "n1", "n2")
    return world


async def test_all_of_the_user_is_gone_from_every_store_and_nothing_of_others(
    world: World,
) -> None:
    await world.run()
    assert world.receipt == Receipt(
        erase_time=world.clock(),
        erased=dict.fromkeys(Store, 0)
        | {
            Store.MEMORIES: 5,
            Store.EMBEDDINGS: 5,
            Store.HISTORY: 5,
            Store.OUTBOX: 5,
            Store.STATES: 1,
            Store.INDEX: 5,
        },
    )
    assert set(world.store.tables.memories) == set(world.index.rows) == {"n1", "n2"}
    assert {owner for owner, _ in world.store.tables.history.values()} == {"u2"}


async def test_an_unknown_user_gets_a_receipt_of_nothing(world: World) -> None:
    world.store.tables.memories.clear()
    world.store.tables.states.clear()
    world.index.rows.clear()
    world.store.tables.history.clear()
    await world.run()
    assert not any(world.receipt.erased.values())


async def test_the_same_request_gets_the_same_receipt_and_erases_nothing_new(
    world: World,
) -> None:
    first = await world.run()
    await world.keep("u1", "later")
    assert await world.run() == first
    assert len(world.receipts) == 1
    assert "later" in world.store.tables.memories
    assert "later" in world.index.rows
    assert world.store.tables.state("u1").settings == UserSettings()


async def test_another_body_under_the_same_request_id_is_refused(world: World) -> None:
    await world.run()
    with pytest.raises(RequestIdReused):
        await world.run(RequestKey("r1", "EraseUser", b"other"))


async def test_an_index_that_is_away_is_pending_and_its_relay_is_to_tell_it(world: World) -> None:
    world.index.down = "unavailable"
    await world.run()
    assert world.receipt.pending == (Store.INDEX,)
    assert world.receipt.erased[Store.INDEX] == 0
    notes = await world.store.claim(limit=99, lease=60, now=world.clock())
    assert {note.memory_id for note in notes if note.user_id == "u1"} == {f"m{n}" for n in range(5)}


async def test_an_index_that_hangs_is_waited_for_in_bounds(world: World) -> None:
    world.index.hang = True
    await world.run()
    assert world.receipt.pending == (Store.INDEX,)


async def test_without_an_index_nothing_is_pending(world: World) -> None:
    world.erase = Erase(world.store, world.store, None)
    await world.run()
    assert world.receipt.pending == ()
    assert world.receipt.erased[Store.INDEX] == 0


@pytest.mark.parametrize("lives", range(5))
async def test_a_crash_at_any_step_leaves_the_user_closed_and_the_next_try_ends_it(
    world: World, lives: int
) -> None:
    world.store.lives = lives
    with pytest.raises(StoreUnavailable):
        await world.run()
    state = world.store.tables.state("u1")
    assert (state.erasing, state.settings.memory_enabled) == (
        ("r1", False) if lives else ("", True)
    )
    world.clock.advance(60)
    world.store.lives = 99
    await world.run()
    assert world.receipt.erased[Store.MEMORIES] == 5
    assert world.receipt.erased[Store.HISTORY] == 5
    begun = 60.0 if lives else 0.0
    assert (world.clock() - world.receipt.erase_time).total_seconds() == begun
    assert world.store.tables.state("u1").settings == UserSettings()
    assert world.store.tables.state("u1").erasing == ""


async def test_an_index_that_only_another_process_can_tell_is_pending(world: World) -> None:
    world.erase = Erase(world.store, world.store, None, elsewhere=True)
    await world.run()
    assert world.receipt.pending == (Store.INDEX,)
