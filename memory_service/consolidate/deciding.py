"""Deciding about the facts of a turn: nothing is stored, and no transaction is open."""

from collections.abc import Sequence
from dataclasses import replace

from memory_service.consolidate.candidates import Candidates
from memory_service.domain.decide import (
    JudgedBy,
    Offer,
    decide,
    is_comparable,
    same_hash,
)
from memory_service.domain.drafts import Draft, draft, drafts, dropped
from memory_service.domain.errors import ModelUnreadable
from memory_service.domain.ingest import (
    Action,
    Decision,
    Extraction,
    Fact,
    Judgement,
    Reason,
    Relation,
    Turn,
)
from memory_service.domain.model import Memory, UserState
from memory_service.domain.plan import Plan
from memory_service.domain.words import likeness
from memory_service.ports import Clock, FactExtractor, MemoryReader, NewId, RelationJudge

COMPARED = 5
"""So many candidates are judged at once."""
ASKED_AGAIN = 1
"""So often a judge is asked again whose answer cannot be used."""
UNREADABLE_JUDGEMENT = "unreadable_judgement"
"""Warning: no answer of the judge about a fact could be used; it counts as new."""


class Decider:
    """Reads facts out of turns, and plans what becomes of them."""

    def __init__(
        self,
        *,
        extractor: FactExtractor,
        judge: RelationJudge,
        candidates: Candidates,
        reader: MemoryReader,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._extractor = extractor
        self._judge = judge
        self._candidates = candidates
        self._reader = reader
        self._clock = clock
        self._new_id = new_id

    async def extract(self, turn: Turn) -> Extraction:
        """Read what a turn says. Raises as FactExtractor does."""
        return await self._extractor.extract(turn)

    async def plan(self, turn: Turn, extraction: Extraction, state: UserState) -> Plan:
        """Decide about each fact, in order; state is the user's from before anything else is read.

        Raises as RelationJudge does, and StoreUnavailable.
        """
        now = self._clock()
        plan = Plan(state, extraction.intent, extraction.warnings)
        memories = [draft(fact, turn, self._new_id(), now) for fact in extraction.facts]
        for each in drafts(extraction, memories, state.settings):
            if each.refusal is None:
                await self._decide(plan, each)
            else:
                warnings = [Reason.INVALID_FACT] if each.refusal is Reason.INVALID_FACT else []
                plan.note(self._versioned(dropped(each.memory, each.refusal)), warnings)
        return plan

    async def _decide(self, plan: Plan, each: Draft) -> None:
        fact = each.memory
        equal = await self._equal(plan, fact)
        if equal is not None:
            plan.add(fact, self._versioned(same_hash(fact, equal)), [equal])
            return
        offers, judgements, unread = await self._judged(each.fact, await self._offers(plan, fact))
        decision, warnings = decide(fact, offers, judgements, self._judged_by())
        warnings = [*warnings, *unread]
        compared = [offer.memory for offer in offers]
        if decision.action is Action.UPDATE:
            equal = await self._equal(plan, decision.fact)
            if equal is not None and equal.memory_id != decision.memory_id:
                # Another memory says the merged text already.
                decision = replace(
                    same_hash(fact, equal),
                    candidates=decision.candidates,
                    model=decision.model,
                    prompt_version=decision.prompt_version,
                )
                compared.append(equal)
        plan.add(fact, decision, compared, warnings)

    async def _equal(self, plan: Plan, fact: Memory) -> Memory | None:
        """Give the active memory that says the same, word for word, as the plan leaves it."""
        made = plan.equal(fact)
        if made is not None:
            return made
        stored = await self._reader.find_active(fact)
        # If the plan has changed it, it says something else by now.
        return stored if stored is not None and plan.seen(stored) is stored else None

    async def _offers(self, plan: Plan, fact: Memory) -> Sequence[Offer]:
        """Give candidates as the plan leaves them, first those that the turn itself made."""
        found = await self._candidates.like(fact)
        stored = [Offer(plan.seen(offer.memory), offer.score) for offer in found]
        made = [Offer(row, likeness(fact.content, row.content)) for row in plan.made(fact)]
        return [*made, *(offer for offer in stored if is_comparable(fact, offer.memory))]

    async def _judged(
        self, fact: Fact, offers: Sequence[Offer]
    ) -> tuple[Sequence[Offer], Sequence[Judgement], Sequence[str]]:
        """Have the best candidates judged, and the next ones for as long as all are conflicts.

        So that of many statements that are almost the same none is left to contradict the new one.
        Also give a warning if a judge could not be understood.
        """
        judgements: list[Judgement] = []
        asked = 0
        while asked < len(offers):
            batch = [offer.memory for offer in offers[asked : asked + COMPARED]]
            asked += len(batch)
            given = await self._related(fact, batch)
            if given is None:
                return offers[:asked], judgements, [UNREADABLE_JUDGEMENT]
            judgements += given
            conflicts = {one.memory_id for one in given if one.relation is Relation.CONFLICT}
            if not conflicts.issuperset(memory.memory_id for memory in batch):
                break
        return offers[:asked], judgements, []

    async def _related(self, fact: Fact, memories: Sequence[Memory]) -> Sequence[Judgement] | None:
        """Ask the judge, twice if need be; None if neither answer can be used.

        One fact without a judgement must not cost the turn its others: it is then compared with
        nothing, which loses no memory.
        """
        for _ in range(ASKED_AGAIN + 1):
            try:
                return await self._judge.relate(fact, memories)
            except ModelUnreadable:
                continue
        return None

    def _versioned(self, decision: Decision) -> Decision:
        by = self._judged_by()
        return replace(decision, model=by.model, prompt_version=by.version)

    def _judged_by(self) -> JudgedBy:
        """Name who read and who judged, in one word each if they differ."""
        model = self._judge.model or self._extractor.model
        versions = dict.fromkeys((self._extractor.version, self._judge.version))
        return JudgedBy(model=model, version="/".join(versions))
