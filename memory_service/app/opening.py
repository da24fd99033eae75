"""Opening and closing the service's parts, in their order."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Connection, text

from memory_service.adapters.embedder_openai import OpenAIEmbedder
from memory_service.adapters.sql.migrate import MIGRATIONS
from memory_service.adapters.sql.store import SqlMemoryStore, open_memory_store
from memory_service.app.jobs import make_job_worker
from memory_service.app.learning import make_learner, make_model
from memory_service.app.parts import (
    ChosenEmbedder,
    make_backfill,
    make_embedder,
    make_index,
    make_loops,
    retrieve_defaults,
    retrieve_settings,
)
from memory_service.app.upkeep import upkeep_loops
from memory_service.consolidate.candidates import Candidates
from memory_service.consolidate.jobs import Jobs
from memory_service.domain.errors import EmbedderUnavailable
from memory_service.handlers.failures import DOMAIN, failure_of
from memory_service.handlers.service import MemoryHandlers, UseCases
from memory_service.ports import Clock, NewId
from memory_service.remember.batch import RememberMany
from memory_service.remember.bells import Bells
from memory_service.remember.browse import Browse
from memory_service.remember.by_hand import Remember
from memory_service.remember.embedding import Embedding
from memory_service.remember.exporting import Export
from memory_service.remember.history import History
from memory_service.remember.importing import Import
from memory_service.remember.watch import Watch
from memory_service.retrieve import Retriever
from memory_service.settings import Settings
from memory_service.upkeep.erase import Erase
from memory_service.upkeep.reindex import Backfill
from memory_service.v1 import memory_pb2, memory_pb2_grpc
from memory_service.worker import Worker, Written
from rpc.ids import new_id, utc_now
from rpc.server import Service

if TYPE_CHECKING:
    from memory_service.adapters.milvus.index import MilvusIndex

_log = structlog.get_logger(__name__)


class MemoryApp:
    """The memory service, opened by open_app; closed with it."""

    def __init__(
        self,
        store: SqlMemoryStore,
        embedder: ChosenEmbedder,
        index: "MilvusIndex | None",
        use_cases: UseCases,
        worker: Worker,
        *,
        is_stalled: Callable[[], bool],
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.index = index
        self.worker = worker
        self._is_stalled = is_stalled
        self._watch = use_cases.watch
        self.service = Service(
            name=memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,
            add=memory_pb2_grpc.add_MemoryServiceServicer_to_server,
            servicer=MemoryHandlers(use_cases),
            failure_of=failure_of,
            domain=DOMAIN,
        )
        self._migrated = False
        self._loaded = asyncio.create_task(_loaded(embedder))

    async def ready(self) -> bool:
        """Tell whether SQL answers with the current schema and the embedder is loaded.

        Nor is it ready while the worker of this process, if it runs one, has come to a stand.
        A schema that was current once counts as current: a newer replica may have changed it. An
        embedder behind an address and Milvus do not count: without them answers are degraded.
        Raises what SQL raises.
        """
        if not (self._loaded.done() and self._loaded.result()):
            return False
        if self._is_stalled():
            return False
        await self.store.database.read(_answers)
        return await self.is_migrated()

    async def is_migrated(self) -> bool:
        """Tell whether the schema is current, or once was. Raises what SQL raises."""
        if not self._migrated:
            self._migrated = await asyncio.to_thread(
                MIGRATIONS.is_current, self.store.database.engine
            )
        return self._migrated

    def backfill(self, settings: Settings) -> Backfill:
        """Say what the index is filled from. Raises ValueError if there is none."""
        if self.index is None:
            message = "there is no index to fill"
            raise ValueError(message)
        return make_backfill(settings, self.store, self.embedder, self.index)

    def drain(self) -> None:
        """End the streams that have no end of their own, before the server stops."""
        self._watch.close()

    async def close(self) -> None:
        """Stop waiting for the embedder."""
        self._loaded.cancel()
        await asyncio.gather(self._loaded, return_exceptions=True)


@asynccontextmanager
async def open_app(
    settings: Settings, *, clock: Clock = utc_now, new_id: NewId = new_id
) -> AsyncIterator[MemoryApp]:
    """Open the service's parts; nothing is served yet and no worker runs.

    Waits for no server: neither SQL nor Milvus need to answer. Raises EmbedderMissing,
    IndexBusy and IndexBroken, and ValueError for addresses that are none.
    """
    async with AsyncExitStack() as closing:
        written, bells = Written(), Bells()
        written.listen(bells.ring)
        store = open_memory_store(
            settings.database_address,
            clock=clock,
            new_id=new_id,
            threads=settings.database_threads,
            job_attempts=settings.job_max_attempts,
            on_written=written,
        )
        closing.callback(store.close)
        embedder = make_embedder(settings)
        closing.push_async_callback(embedder.close)
        index = make_index(settings, store, embedder)
        if index is not None:
            closing.push_async_callback(index.close)
            await index.start()
        retriever = Retriever(
            reader=store.reader,
            writer=store.writer,
            index=index,
            embedder=embedder,
            clock=clock,
            settings=retrieve_settings(settings),
        )
        closing.push_async_callback(retriever.close)
        embedding = Embedding(embedder, timeout=settings.embed_timeout)
        erase = Erase(store.reader, store.writer, index)
        model = make_model(settings)
        if model is not None:
            closing.push_async_callback(model.close)
        candidates = Candidates(retriever.alike, embedder)
        learner = make_learner(
            *(model, store, candidates, embedding),
            clock=clock,
            new_id=new_id,
            verbatim_turns=settings.verbatim_turns,
        )
        jobs = make_job_worker(settings, store, learner, clock)
        use_cases = UseCases(
            retriever=retriever,
            remember=Remember(store.reader, store.writer, embedding, clock=clock, new_id=new_id),
            remember_many=RememberMany(store.writer, embedding, clock=clock, new_id=new_id),
            browse=Browse(store.reader, clock=clock),
            erase=erase,
            export=Export(store.snapshot),
            importing=Import(store.writer, embedding, clock=clock, new_id=new_id),
            history=History(store.history, store.writer, embedding, clock=clock),
            watch=Watch(store.history, bells, poll=settings.watch_poll),
            learner=learner,
            jobs=Jobs(store.jobs, store.writer, clock=clock, new_id=new_id, on_stored=jobs.notify),
            retrieve_defaults=retrieve_defaults(settings),
            retrieve_timeout=settings.retrieve_timeout,
        )
        loops = make_loops(settings, store, embedder, index, clock, written)
        loops |= upkeep_loops(settings, store, index, erase, clock) | {"jobs": jobs.run}
        worker = Worker(loops)
        app = MemoryApp(store, embedder, index, use_cases, worker, is_stalled=jobs.stalled)
        closing.push_async_callback(app.close)
        yield app


def migrate(settings: Settings) -> str:
    """Bring the database to the current schema, and give its version. Raises SQLAlchemyError."""
    MIGRATIONS.upgrade(settings.database_address)
    return MIGRATIONS.head or ""


async def _loaded(embedder: ChosenEmbedder) -> bool:
    """Load an embedder of this process by a first text; True once it works."""
    if isinstance(embedder, OpenAIEmbedder):
        return True
    try:
        await embedder.embed_queries(["hello"])
    except EmbedderUnavailable as error:
        _log.error("embedder_unusable", cause=error.cause)
        return False
    return True


def _answers(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))
