"""An extractor and a judge that say what a test tells them to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from memory_service.domain.ingest import Extraction, Fact, Intent, Judgement, Relation, Turn
from memory_service.domain.model import Memory

Told = Relation | tuple[Relation, str]


async def _nothing() -> None:
    return


class FakeExtractor:
    """Implements FactExtractor. extractions: by the turn's first message; meanwhile runs first.

    A turn that is not there says nothing worth keeping. error is raised, while it is set.
    """

    model = ""
    version = "e1"

    def __init__(
        self, extractions: Mapping[str, Extraction | Sequence[Fact]] | None = None
    ) -> None:
        self.extractions = dict(extractions or {})
        self.turns: list[Turn] = []
        self.error: Exception | None = None
        self.meanwhile: Callable[[], Awaitable[object]] = _nothing

    async def extract(self, turn: Turn) -> Extraction:
        self.turns.append(turn)
        await self.meanwhile()
        if self.error:
            raise self.error
        found = self.extractions.get(turn.messages[0].content, Extraction(intent=Intent.CHITCHAT))
        if isinstance(found, Extraction):
            return found
        return Extraction(intent=Intent.PREFERENCE, facts=tuple(found))


class FakeJudge:
    """Implements RelationJudge. relations: by the words of fact and candidate; else unrelated.

    asked: the facts and the candidates' words of each call; meanwhile runs first. also: judgements
    that are given on top.
    """

    version = "j1"

    def __init__(
        self, relations: Mapping[tuple[str, str], Told] | None = None, *, model: str = ""
    ) -> None:
        self.relations = dict(relations or {})
        self.model = model
        self.asked: list[tuple[str, list[str]]] = []
        self.also: list[Judgement] = []
        self.error: Exception | None = None
        self.meanwhile: Callable[[], Awaitable[object]] = _nothing

    async def relate(self, fact: Fact, candidates: Sequence[Memory]) -> Sequence[Judgement]:
        self.asked.append((fact.content, [one.content for one in candidates]))
        await self.meanwhile()
        if self.error:
            raise self.error
        return [*self.also, *(self._judged(fact, one) for one in candidates)]

    def _judged(self, fact: Fact, candidate: Memory) -> Judgement:
        told = self.relations.get((fact.content, candidate.content), Relation.UNRELATED)
        relation, merged = told if isinstance(told, tuple) else (told, "")
        return Judgement(memory_id=candidate.memory_id, relation=relation, merged=merged)
