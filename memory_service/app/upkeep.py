"""What upkeep is made of: for the worker beside the RPCs, and for the commands."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from memory_service.adapters.sql.store import SqlMemoryStore, open_memory_store
from memory_service.codec.erase import erase_answer, erase_key
from memory_service.domain.change import OPERATOR, SYSTEM
from memory_service.ports import Clock
from memory_service.settings import OFF, Settings
from memory_service.upkeep.dedup import Dedup, sweep_duplicates
from memory_service.upkeep.erase import Erase
from memory_service.upkeep.expiry import Expiry, sweep_expired
from memory_service.upkeep.purge import Purge, purge
from memory_service.upkeep.reconcile import Reconcile, reconcile
from memory_service.upkeep.sweeping import Sweep, rounds
from memory_service.worker import Loop, show_drift
from rpc.ids import new_id, utc_now

if TYPE_CHECKING:
    from memory_service.adapters.milvus.index import MilvusIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """The sweeps over one store, in one name."""

    expiry: Expiry
    dedup: Dedup
    purge: Purge


def make_upkeep(
    settings: Settings, store: SqlMemoryStore, erase: Erase, clock: Clock, *, actor: str = SYSTEM
) -> Upkeep:
    """Make the sweeps that need SQL only."""

    async def end_erasure(user_id: str, request_id: str) -> None:
        await erase.erase(user_id, erase_key(user_id, request_id), erase_answer)

    return Upkeep(
        expiry=Expiry(due=store.due, writer=store.writer, clock=clock, actor=actor),
        dedup=Dedup(
            due=store.due, reader=store.reader, writer=store.writer, clock=clock, actor=actor
        ),
        purge=Purge(
            due=store.due,
            forgetting=store.forgetting,
            writer=store.writer,
            clock=clock,
            end_erasure=end_erasure,
            actor=actor,
            deleted_kept=timedelta(seconds=settings.deleted_kept),
            answers_kept=timedelta(seconds=settings.answers_kept),
            jobs_kept=timedelta(seconds=settings.jobs_kept),
        ),
    )


def make_reconcile(
    store: SqlMemoryStore, index: "MilvusIndex", clock: Clock, *, user_id: str = ""
) -> Reconcile:
    """Say what is compared with the index."""
    return Reconcile(
        due=store.due,
        audit=store.audit,
        index=index,
        collections=store.collections,
        collection=index.collection,
        clock=clock,
        user_id=user_id,
    )


def upkeep_loops(
    settings: Settings,
    store: SqlMemoryStore,
    index: "MilvusIndex | None",
    erase: Erase,
    clock: Clock,
) -> dict[str, Loop]:
    """Give the sweeps as loops; one whose interval is 0 does not run."""
    upkeep = make_upkeep(settings, store, erase, clock)
    loops = {
        "expiry": _loop("expiry", lambda: sweep_expired(upkeep.expiry), settings.expiry_every),
        "dedup": _loop("dedup", lambda: sweep_duplicates(upkeep.dedup), settings.dedup_every),
        "purge": _loop("purge", lambda: purge(upkeep.purge), settings.purge_every),
    }
    if index is not None:
        compared = make_reconcile(store, index, clock)
        loops["reconcile"] = _loop(
            "reconcile", lambda: reconcile(compared), settings.reconcile_every, show_drift
        )
    return {name: loop for name, loop in loops.items() if loop is not None}


def _loop(
    name: str, sweep: Sweep, every: float, on_end: Callable[..., object] = lambda _counts: None
) -> Loop | None:
    if not every:
        return None

    def loop() -> Awaitable[None]:
        return rounds(name, sweep, every=every, on_end=on_end)

    return loop


@asynccontextmanager
async def open_upkeep(settings: Settings) -> AsyncIterator[tuple[SqlMemoryStore, Upkeep]]:
    """Open SQL alone for the commands that need no more, also beside a service on the same data.

    The index is another process's to tell.
    """
    store = open_memory_store(
        settings.database_address,
        clock=utc_now,
        new_id=new_id,
        threads=settings.database_threads,
    )
    try:
        elsewhere = settings.milvus_address != OFF
        erase = Erase(store.reader, store.writer, None, elsewhere=elsewhere)
        yield store, make_upkeep(settings, store, erase, utc_now, actor=OPERATOR)
    finally:
        store.close()
