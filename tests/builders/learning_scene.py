"""A learner over fakes: said() is one turn, from the queue to the finished job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory_service.consolidate.candidates import Candidates
from memory_service.consolidate.deciding import Decider
from memory_service.consolidate.learner import Learner
from memory_service.consolidate.verbatim import VerbatimTurns
from memory_service.domain.change import PastChange
from memory_service.domain.ingest import Decision, Fact, IngestOutcome, Job, Turn
from memory_service.domain.model import Memory, MemoryStatus, MemoryType, UserSettings
from memory_service.ports import ClaimedJob, RequestKey
from memory_service.remember.embedding import Embedding
from tests.builders.memories import memory
from tests.builders.retrieving import Scene
from tests.builders.turns import turn
from tests.fakes.clock import FakeIds
from tests.fakes.learning import FakeExtractor, FakeJudge


@dataclass
class Learning(Scene):
    """The judge knows the relations that a test tells it; all texts are near each other."""

    verbatim: bool = False
    """Whether users may have turns kept word for word."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ids = FakeIds()
        self.extractor = FakeExtractor()
        self.judge = FakeJudge()
        self.embedding = Embedding(self.embedder, timeout=0.05)
        self.candidates = Candidates(self.retriever.alike, self.embedder)
        self.embedder.likeness_floor = -1.0
        decider = Decider(
            extractor=self.extractor,
            judge=self.judge,
            candidates=self.candidates,
            reader=self.store,
            clock=self.clock,
            new_id=self.ids,
        )
        self.learner = Learner(
            *(decider, self.store, self.store, self.embedding),
            clock=self.clock,
            verbatim=VerbatimTurns(clock=self.clock, new_id=self.ids) if self.verbatim else None,
        )
        self.jobs = FakeIds()

    async def claimed(self, text: str = "Hello.", **more: Any) -> ClaimedJob:
        """Queue a turn of one message and take it from the queue."""
        return await self.queued(turn(text, **more))

    async def queued(self, said: Turn) -> ClaimedJob:
        """Queue a turn and take it from the queue."""
        job_id = f"job-{self.jobs()}"

        def work(tx: Any) -> bytes:
            tx.jobs.add(job_id, said, job_id, self.clock())
            return b""

        await self.store.once(said.user_id, RequestKey(job_id, "IngestTurn", b""), work)
        claimed = await self.store.queue.claim(lease=60, now=self.clock())
        assert claimed is not None
        return claimed

    async def said(self, text: str, *facts: Fact, **more: Any) -> IngestOutcome:
        """Learn from a turn in which these facts are read."""
        self.extractor.extractions[text] = facts
        return await self.learnt(await self.claimed(text, **more))

    async def learnt(self, claimed: ClaimedJob) -> IngestOutcome:
        """Learn, and give the outcome of the job."""
        await self.learner.learn(claimed)
        outcome = (await self.job(claimed)).outcome
        assert outcome is not None
        return outcome

    async def job(self, claimed: ClaimedJob) -> Job:
        """Give a job as it is now."""
        job = await self.store.queue.get(claimed.job.turn.user_id, claimed.job.job_id)
        assert job is not None
        return job

    def has(self, memory_id: str, content: str, **more: Any) -> Memory:
        """Store a preference and give it as stored."""
        values: dict[str, Any] = {"memory_type": MemoryType.PREFERENCE} | more
        self.store_rows(memory(memory_id, content, **values))
        return self.row(memory_id)

    def allow(self, settings: UserSettings) -> None:
        """Set the user's settings."""
        self.store.seed("u1", settings=settings)

    def row(self, memory_id: str) -> Memory:
        """Give a memory in any status."""
        return self.store.tables.memories[memory_id]

    def active(self, user_id: str = "u1") -> list[str]:
        """Give what the active memories say, sorted."""
        return sorted(row.content for row in self.store.tables.active(user_id))

    def superseded(self) -> list[str]:
        """Give what the superseded memories say, sorted."""
        rows = self.store.tables.of("u1")
        return sorted(row.content for row in rows if row.status is MemoryStatus.SUPERSEDED)

    def history(self) -> Sequence[PastChange]:
        """Give all changes, oldest first."""
        return [change for _, change in self.store.tables.history.values()]


def only(outcome: IngestOutcome) -> Decision:
    """Give the only decision."""
    (decision,) = outcome.decisions
    return decision
