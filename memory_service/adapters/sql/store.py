"""All of the memory service's SQL, opened from an address."""

from collections.abc import Callable
from dataclasses import dataclass

from database.access import Database
from database.engine import open_engine
from memory_service.adapters.sql.backfill import SqlCollections
from memory_service.adapters.sql.history import SqlMemoryHistory
from memory_service.adapters.sql.jobs import SqlJobQueue, SqlJobReader
from memory_service.adapters.sql.outbox import SqlIndexOutbox
from memory_service.adapters.sql.reader import SqlMemoryReader
from memory_service.adapters.sql.snapshot import SqlMemorySnapshot
from memory_service.adapters.sql.upkeep import SqlDue, SqlForgetting, SqlIndexAudit
from memory_service.adapters.sql.writer import SqlMemoryWriter
from memory_service.domain.errors import StoreUnavailable
from memory_service.ports import Clock, NewId


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlMemoryStore:
    """One class per port, on one engine and its threads. migrate.MIGRATIONS makes the tables."""

    database: Database
    reader: SqlMemoryReader
    writer: SqlMemoryWriter
    history: SqlMemoryHistory
    outbox: SqlIndexOutbox
    collections: SqlCollections
    jobs: SqlJobReader
    queue: SqlJobQueue
    snapshot: SqlMemorySnapshot
    due: SqlDue
    forgetting: SqlForgetting
    audit: SqlIndexAudit

    def close(self) -> None:
        """Let go of threads and connections."""
        self.database.close()


def open_memory_store(
    url: str,
    *,
    clock: Clock,
    new_id: NewId,
    threads: int = 8,
    job_attempts: int = 6,
    on_written: Callable[[str], object] = lambda _user_id: None,
) -> SqlMemoryStore:
    """Give the store at an address; connects at first use. threads: calls at a time.

    job_attempts: how many a job has before it is parked. on_written hears whose memories,
    settings or jobs were written, once that is committed.
    """
    engine = open_engine(url, pool_size=threads)
    database = Database(engine, unavailable=StoreUnavailable, threads=threads)
    return SqlMemoryStore(
        database=database,
        reader=SqlMemoryReader(database),
        writer=SqlMemoryWriter(database, clock=clock, on_written=on_written),
        history=SqlMemoryHistory(database),
        outbox=SqlIndexOutbox(database, new_id=new_id),
        collections=SqlCollections(database, clock=clock),
        jobs=SqlJobReader(database),
        queue=SqlJobQueue(database, new_id=new_id, attempts=job_attempts),
        snapshot=SqlMemorySnapshot(database),
        due=SqlDue(database),
        forgetting=SqlForgetting(database),
        audit=SqlIndexAudit(database),
    )
