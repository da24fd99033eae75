"""What learns from turns: a language model if the settings name one, else the rules."""

from typing import TYPE_CHECKING

from memory_service.adapters.extractor_rules import RulesExtractor
from memory_service.adapters.judge_rules import RulesJudge
from memory_service.adapters.sql.store import SqlMemoryStore
from memory_service.consolidate.candidates import Candidates
from memory_service.consolidate.deciding import Decider
from memory_service.consolidate.learner import Learner
from memory_service.consolidate.verbatim import VerbatimTurns
from memory_service.ports import Clock, FactExtractor, NewId, RelationJudge
from memory_service.remember.embedding import Embedding
from memory_service.settings import Settings

if TYPE_CHECKING:
    from memory_service.adapters.llm import ChatModel


def make_model(settings: Settings) -> "ChatModel | None":
    """Give the model of the settings, to be closed at the end; None if the rules learn.

    Raises ValueError for a key that no header can carry.
    """
    if not settings.has_llm:
        return None
    from memory_service.adapters.llm import (  # noqa: PLC0415 — takes seconds to import
        ChatModel,
        ModelEndpoint,
    )

    return ChatModel(
        ModelEndpoint(
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key.get_secret_value(),
            model=settings.llm_model,
            timeout=settings.llm_timeout,
            max_output_tokens=settings.llm_max_output_tokens,
        )
    )


def make_extractor(model: "ChatModel | None") -> FactExtractor:
    """Give what reads facts."""
    if model is None:
        return RulesExtractor()
    from memory_service.adapters.llm import LlmExtractor  # noqa: PLC0415 — as above

    return LlmExtractor(model)


def make_judge(model: "ChatModel | None") -> RelationJudge:
    """Give what judges relations."""
    if model is None:
        return RulesJudge()
    from memory_service.adapters.llm import LlmJudge  # noqa: PLC0415 — as above

    return LlmJudge(model)


def make_learner(  # noqa: PLR0913 - what learning is made of, constructed in one place
    model: "ChatModel | None",
    store: SqlMemoryStore,
    candidates: Candidates,
    embedding: Embedding,
    *,
    clock: Clock,
    new_id: NewId,
    verbatim_turns: bool,
) -> Learner:
    """Give what learns from turns, with the model or by the rules."""
    decider = Decider(
        extractor=make_extractor(model),
        judge=make_judge(model),
        candidates=candidates,
        reader=store.reader,
        clock=clock,
        new_id=new_id,
    )
    verbatim = VerbatimTurns(clock=clock, new_id=new_id) if verbatim_turns else None
    return Learner(decider, store.reader, store.writer, embedding, clock=clock, verbatim=verbatim)
