"""The judge that needs no model: rules for statements about the same thing, English and Chinese."""

from collections.abc import Sequence

from memory_service.domain.claims.relate import relate
from memory_service.domain.ingest import Fact, Judgement, Relation
from memory_service.domain.model import Memory


class RulesJudge:
    """Implements ports.learning.RelationJudge. In doubt a fact is unrelated, and then added."""

    model = ""
    version = "rules-1"

    async def relate(self, fact: Fact, candidates: Sequence[Memory]) -> Sequence[Judgement]:
        """Judge each candidate by its words. An update's merged text is the fact's own."""
        judged = [(one.memory_id, relate(fact.content, one.content)) for one in candidates]
        return [
            Judgement(
                memory_id=memory_id,
                relation=relation,
                merged=fact.content if relation is Relation.UPDATE else "",
            )
            for memory_id, relation in judged
        ]
