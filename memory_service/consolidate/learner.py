"""Learning from a turn: read, decide, then apply in one transaction that checks again."""

from collections.abc import Sequence
from dataclasses import replace

from memory_service.consolidate.allowed import user_state
from memory_service.consolidate.deciding import Decider
from memory_service.consolidate.verbatim import VerbatimTurns
from memory_service.domain.change import SYSTEM, Change
from memory_service.domain.errors import MemoriesChanging
from memory_service.domain.ingest import (
    Extraction,
    IngestOutcome,
    Intent,
    Turn,
    since_erased,
    why_not_learnt,
)
from memory_service.domain.model import Memory, Operation, UserState
from memory_service.domain.plan import Plan
from memory_service.domain.text import indexed_text
from memory_service.domain.verbatim import VERBATIM
from memory_service.ports import (
    ClaimedJob,
    Clock,
    MemoryReader,
    MemoryWriter,
    Transaction,
    Vector,
)
from memory_service.remember.embedding import Embedding

TRIES = 4
"""So often it is decided anew because others changed what was decided about."""


class Learner:
    """Implements Learns, and tells what would be learnt."""

    def __init__(
        self,
        decider: Decider,
        reader: MemoryReader,
        writer: MemoryWriter,
        embedding: Embedding,
        *,
        clock: Clock,
        verbatim: VerbatimTurns | None = None,
    ) -> None:
        """Keep no turn word for word if verbatim is None."""
        self._decider = decider
        self._reader = reader
        self._writer = writer
        self._embedding = embedding
        self._clock = clock
        self._verbatim = verbatim

    async def learn(self, claimed: ClaimedJob) -> None:
        """See Learns. Raises MemoriesChanging if the user's memories do not stand still."""
        heard: Turn | None = None
        extraction = Extraction(intent=Intent.CHITCHAT)
        tries = TRIES
        while True:
            state = await user_state(self._reader, claimed.job.turn.user_id, self._clock())
            turn = since_erased(state, claimed.job.turn)
            if turn != heard and turn.messages:
                heard, extraction = turn, await self._decider.extract(turn)
            plan = await self._planned(turn, extraction, state)
            try:
                await self._apply(claimed, turn, plan)
            except MemoriesChanging:
                tries -= 1
                if not tries:
                    raise
            else:
                return

    async def dry_run(self, turn: Turn) -> IngestOutcome:
        """Give what would come of a turn, and store nothing; ids that are not made yet are empty.

        Raises as FactExtractor and RelationJudge do, and StoreUnavailable.
        """
        state = await user_state(self._reader, turn.user_id, self._clock())
        reason = why_not_learnt(state, turn)
        if reason:
            return IngestOutcome(warnings=(reason,))
        turn = since_erased(state, turn)
        plan = await self._planned(turn, await self._decider.extract(turn), state)
        return _without_new_ids(plan)

    async def _planned(self, turn: Turn, extraction: Extraction, state: UserState) -> Plan:
        plan = await self._decider.plan(turn, extraction, state)
        if self._verbatim is not None:
            await self._verbatim.add(plan, turn, extraction)
        return plan

    async def _apply(self, claimed: ClaimedJob, turn: Turn, plan: Plan) -> None:
        """Store what a plan for a turn changes, and finish the job. Raises MemoriesChanging."""
        vectors = await self._vectors(plan)
        kept = list(zip(plan.kept, await self._embedding.vectors(plan.kept), strict=True))

        def work(tx: Transaction) -> None:
            if not tx.jobs.is_held(claimed):
                return
            reason = why_not_learnt(tx.state, claimed.job.turn)
            if reason:
                tx.jobs.finish(claimed, IngestOutcome(warnings=(reason,)))
                return
            was_erased = since_erased(tx.state, turn) != turn
            if was_erased or plan.is_stale(tx.state, tx.changes(plan.state.revision)):
                raise MemoriesChanging
            for change, vector in zip(plan.changes, vectors, strict=True):
                tx.put(change, vector, self._embedding.fingerprint)
            for memory, vector in kept:
                if tx.find_active(memory) is None:
                    tx.put(_keep(memory), vector, self._embedding.fingerprint)
            tx.jobs.finish(claimed, plan.outcome)

        await self._writer.change(claimed.job.turn.user_id, work)

    async def _vectors(self, plan: Plan) -> Sequence[Vector | None]:
        """Embed the words that are new, for each change; without one the relay makes it later."""
        new = [each for each in plan.changes if _says_something_new(each)]
        made = iter(await self._embedding.vectors([each.after for each in new]))
        return [next(made) if _says_something_new(each) else None for each in plan.changes]


def _keep(memory: Memory) -> Change:
    return Change(
        operation=Operation.CREATE, actor=SYSTEM, reason=VERBATIM, before=None, after=memory
    )


def _says_something_new(change: Change) -> bool:
    return change.before is None or indexed_text(change.before) != indexed_text(change.after)


def _without_new_ids(plan: Plan) -> IngestOutcome:
    """Give the outcome without the ids that only applying the plan would make."""

    def known(memory_id: str) -> str:
        return "" if memory_id in plan.new_ids else memory_id

    return replace(
        plan.outcome,
        decisions=tuple(
            replace(
                each,
                fact=replace(each.fact, memory_id=known(each.fact.memory_id)),
                memory_id=known(each.memory_id),
                superseded_ids=tuple(one for one in each.superseded_ids if known(one)),
                candidates=tuple(
                    replace(one, memory_id=known(one.memory_id)) for one in each.candidates
                ),
            )
            for each in plan.outcome.decisions
        ),
    )
