"""What Collections promises."""

from dataclasses import replace

import numpy as np

from memory_service.domain.model import IndexState, MemoryStatus, Role
from tests.builders.memories import memory
from tests.contract.memory_service.memory_stores import Stores

VECTOR = np.eye(1, 512, dtype=np.float32)[0]


async def test_the_collection_of_an_empty_store_is_ready_and_stays_so(stores: Stores) -> None:
    assert await stores.collections.ready("use") is True
    await stores.keep(memory("m1"))
    assert await stores.collections.ready("use") is True
    assert await stores.collections.ready("e5") is False


async def test_a_store_of_deleted_memories_is_empty(stores: Stores) -> None:
    await stores.keep(memory("m1", status=MemoryStatus.DELETED))
    assert await stores.collections.ready("use") is True


async def test_a_store_of_what_the_assistant_said_has_nothing_for_the_index(
    stores: Stores,
) -> None:
    await stores.keep(memory("m1", is_verbatim=True, role=Role.ASSISTANT))
    assert await stores.collections.ready("use") is True
    assert await stores.collections.count() == 0
    assert list(await stores.collections.batch(after="", limit=9, fingerprint="use")) == []


async def test_a_backfilled_collection_is_ready(stores: Stores) -> None:
    await stores.keep(memory("m1"))
    assert await stores.collections.ready("use") is False
    await stores.collections.mark_ready("use")
    await stores.collections.mark_ready("use")
    assert await stores.collections.ready("use") is True


async def test_a_lost_collection_is_not_ready_if_the_index_had_been_told(stores: Stores) -> None:
    await stores.keep(memory("m1"))
    await stores.collections.mark_ready("use")
    await stores.collections.mark_ready("e5")
    await stores.collections.mark_lost("use")
    assert await stores.collections.ready("use") is True, "all are still in the outbox"
    now = stores.clock.now
    notes = await stores.outbox.claim(limit=9, lease=9, now=now)
    await stores.outbox.told(dict.fromkeys(notes, IndexState.SYNCED), now=now)
    await stores.collections.mark_lost("use")
    assert await stores.collections.ready("use") is False
    assert await stores.collections.ready("e5") is True


async def test_only_the_collection_that_is_told_of_changes_stays_ready(stores: Stores) -> None:
    await stores.keep(memory("m1"))
    await stores.collections.mark_ready("use")
    await stores.collections.mark_ready("e5")
    await stores.collections.take_over("e5")
    assert await stores.collections.ready("e5") is True
    assert await stores.collections.ready("use") is False


async def test_batches_walk_the_active_memories_of_all_users(stores: Stores) -> None:
    await stores.keep(memory("m1"), memory("m4"), vector=VECTOR)
    await stores.keep(memory("m2", user_id="u2"), memory("m3", user_id="u2"))
    (gone,) = await stores.keep(memory("m5"))
    await stores.change(gone, replace(gone, status=MemoryStatus.DELETED, version=2))
    seen: list[tuple[str, bool]] = []
    after = ""
    while rows := await stores.collections.batch(after=after, limit=2, fingerprint="use"):
        seen += [(row.memory.memory_id, row.vector is not None) for row in rows]
        after = rows[-1].memory.memory_id
    assert seen == [("m1", True), ("m2", False), ("m3", False), ("m4", True)]
    assert await stores.collections.count() == 4
