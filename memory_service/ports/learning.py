"""What reads facts out of conversations, and what compares them with memories."""

from collections.abc import Sequence
from typing import Protocol

from memory_service.domain.ingest import Extraction, Fact, Judgement, Turn
from memory_service.domain.model import Memory


class FactExtractor(Protocol):
    """Reads facts out of what the user said.

    Raises ModelUnavailable when a model does not answer, which is nobody's fault, and
    ModelUnreadable when this turn's answer cannot be used.
    """

    @property
    def model(self) -> str:
        """Name of the model; empty for rules."""
        ...

    @property
    def version(self) -> str:
        """Version of the prompt or the rules."""
        ...

    async def extract(self, turn: Turn) -> Extraction:
        """Give intent and facts, in the language of the user's words and in their order.

        Relative dates are resolved against each message's own time and zone. Only what the user
        said becomes a fact.
        """
        ...


class RelationJudge(Protocol):
    """Says what a fact is to memories that are there. Raises as FactExtractor does."""

    @property
    def model(self) -> str:
        """Name of the model; empty for rules."""
        ...

    @property
    def version(self) -> str:
        """Version of the prompt or the rules."""
        ...

    async def relate(self, fact: Fact, candidates: Sequence[Memory]) -> Sequence[Judgement]:
        """Give at most one judgement per candidate; one that is not named is unrelated.

        Judgements may name memories that were not offered: the caller refuses those.
        """
        ...
