"""A Retriever over fakes, with the index told or not told of what is stored."""

from dataclasses import dataclass, field, replace

from memory_service.domain.model import IndexState, Memory, Scope, UserSettings
from memory_service.domain.recall import Answer, Leg, Query, Source
from memory_service.domain.text import indexed_text
from memory_service.ports import StoredRow
from memory_service.retrieve import Retriever, RetrieveSettings
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.index import FakeVectorIndex
from tests.fakes.memory_store import FakeMemoryStore

QUICK = RetrieveSettings(total=2.0, search_most=0.2, touch_interval=0.0)
"""For what hangs: soon given up."""
PATIENT = RetrieveSettings(total=60.0, search_most=20.0, touch_interval=0.0)
"""For what answers, on a busy machine too."""


@dataclass
class Scene:
    """Everything a Retrieve needs; ask() asks on behalf of u1 unless told otherwise."""

    clock: FakeClock = field(default_factory=FakeClock)
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    index: FakeVectorIndex = field(default_factory=FakeVectorIndex)
    settings: RetrieveSettings = PATIENT
    without_index: bool = False

    def __post_init__(self) -> None:
        self.store = FakeMemoryStore(clock=self.clock, new_id=FakeIds())
        self.retriever = Retriever(
            reader=self.store,
            writer=self.store,
            index=None if self.without_index else self.index,
            embedder=self.embedder,
            clock=self.clock,
            settings=self.settings,
        )

    def store_rows(
        self, *memories: Memory, embedded: bool = True, settings: UserSettings | None = None
    ) -> int:
        """Store memories of each user, with their embeddings; give the last one's revision."""
        revision = 0
        for user_id in sorted({memory.user_id for memory in memories}):
            mine = [memory for memory in memories if memory.user_id == user_id]
            rows = [
                (row, self.embedder.vector(indexed_text(row)))
                if embedded and not row.supports_only
                else row
                for row in mine
            ]
            revision = self.store.seed(
                user_id, *rows, fingerprint=self.embedder.fingerprint, settings=settings
            ).revision
        return revision

    async def tell_index(self) -> None:
        """Do what a relay does: tell the index of all that it has not been told, and settle."""
        now = self.clock()
        notes = await self.store.claim(limit=100_000, lease=60, now=now)
        rows = await self.store.load_any(notes, fingerprint=self.embedder.fingerprint)
        active = [row for row in rows if row.memory.is_indexed]
        fit = [row for row in active if row.vector is not None and row.vector.any()]
        await self.index.upsert(fit)
        known = {row.memory.memory_id for row in fit}
        await self.index.remove([n.memory_id for n in notes if n.memory_id not in known])
        reached = dict.fromkeys((row.memory.memory_id for row in active), IndexState.FAILED)
        reached |= dict.fromkeys(known, IndexState.SYNCED)
        await self.store.told(
            {note: reached.get(note.memory_id, IndexState.REMOVED) for note in notes}, now=now
        )
        self.clock.advance(0.001)
        await self.store.settle(before=self.clock())

    async def known(self, *memories: Memory, settings: UserSettings | None = None) -> None:
        """Store memories and tell the index."""
        self.store_rows(*memories, settings=settings)
        await self.tell_index()

    async def ask(self, text: str = "", *, deadline: float = 60.0, **more: object) -> Answer:
        """Retrieve; more are fields of the Query."""
        query = replace(Query(scope=Scope(user_id="u1"), text=text), **more)  # type: ignore[arg-type]
        return await self.retriever.retrieve(query, deadline=deadline)

    def stored_row(self, memory: Memory) -> StoredRow:
        """Give a memory as stored, with its embedding."""
        return StoredRow(memory, self.embedder.vector(indexed_text(memory)))


def ids(answer: Answer) -> list[str]:
    """Give the ids of the items, in order."""
    return [item.candidate.memory.memory_id for item in answer.items]


def leg(answer: Answer, which: Leg) -> Source:
    """Give what one leg did."""
    (found,) = [source for source in answer.sources if source.leg is which]
    return found
