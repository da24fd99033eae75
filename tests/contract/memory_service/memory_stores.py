"""The memory store's ports over one set of data, in memory or in SQL."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from memory_service.adapters.sql.schema import metadata
from memory_service.adapters.sql.store import SqlMemoryStore, open_memory_store
from memory_service.domain.change import Change
from memory_service.domain.model import Memory, Operation, UserSettings
from memory_service.ports import (
    Collections,
    Due,
    Forgetting,
    IndexAudit,
    IndexOutbox,
    JobQueue,
    JobReader,
    MemoryHistory,
    MemoryReader,
    MemorySnapshot,
    MemoryWriter,
    RequestKey,
    Transaction,
    Vector,
)
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.memory_store import FakeMemoryStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    reader: MemoryReader
    writer: MemoryWriter
    history: MemoryHistory
    outbox: IndexOutbox
    collections: Collections
    jobs: JobReader
    queue: JobQueue
    snapshot: MemorySnapshot
    due: Due
    forgetting: Forgetting
    audit: IndexAudit
    clock: FakeClock
    ids: FakeIds

    async def write(self, work: Callable[[Transaction], object], user_id: str = "u1") -> None:
        """Run work under a request_id of its own."""

        def answering(transaction: Transaction) -> bytes:
            work(transaction)
            return b"done"

        await self.writer.once(user_id, RequestKey(self.ids(), "Test", b"digest"), answering)

    async def keep(self, *rows: Memory, vector: Vector | None = None) -> list[Memory]:
        """Create memories, all of one user, and give them as stored."""
        stored: list[Memory] = []

        def work(transaction: Transaction) -> None:
            stored.clear()
            stored.extend(
                transaction.put(created(row), vector, "use" if vector is not None else "")
                for row in rows
            )

        await self.write(work, rows[0].user_id)
        return stored

    async def change(self, before: Memory, after: Memory, vector: Vector | None = None) -> Memory:
        """Replace a memory and give it as stored."""
        stored: list[Memory] = []

        def work(transaction: Transaction) -> None:
            fingerprint = "use" if vector is not None else ""
            stored.append(transaction.put(changed(before, after), vector, fingerprint))

        await self.write(work, before.user_id)
        return stored[-1]

    async def allow(self, settings: UserSettings, user_id: str = "u1") -> None:
        await self.write(lambda transaction: transaction.set_settings(settings), user_id)


def created(after: Memory) -> Change:
    return Change(operation=Operation.CREATE, actor="user", reason="", before=None, after=after)


def changed(before: Memory, after: Memory) -> Change:
    return Change(operation=Operation.UPDATE, actor="user", reason="", before=before, after=after)


def fake_stores() -> Stores:
    clock, ids = FakeClock(), FakeIds()
    store = FakeMemoryStore(clock=clock, new_id=ids)
    return Stores(
        reader=store,
        writer=store,
        history=store.history,
        outbox=store,
        collections=store,
        jobs=store.queue,
        queue=store.queue,
        snapshot=store,
        due=store.upkeep,
        forgetting=store.upkeep,
        audit=store.upkeep,
        clock=clock,
        ids=ids,
    )


def open_sql(url: str) -> tuple[SqlMemoryStore, Stores]:
    clock, ids = FakeClock(), FakeIds()
    store = open_memory_store(url, clock=clock, new_id=ids)
    stores = Stores(
        reader=store.reader,
        writer=store.writer,
        history=store.history,
        outbox=store.outbox,
        collections=store.collections,
        jobs=store.jobs,
        queue=store.queue,
        snapshot=store.snapshot,
        due=store.due,
        forgetting=store.forgetting,
        audit=store.audit,
        clock=clock,
        ids=ids,
    )
    return store, stores


def empty(engine: Engine) -> None:
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            connection.execute(table.delete())
