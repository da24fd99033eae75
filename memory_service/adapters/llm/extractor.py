"""ports.FactExtractor over a language model."""

from memory_service.adapters.llm.chat_model import ChatModel
from memory_service.adapters.llm.extract_prompt import VERSION, extract_prompt
from memory_service.adapters.llm.facts import read_facts
from memory_service.domain.ingest import (
    Extraction,
    Intent,
    Turn,
)
from memory_service.domain.model import Role


class LlmExtractor:
    """Implements ports.FactExtractor.

    A fact that shares no word with what the user said is dropped: it is the assistant's, a copy of
    the prompt's examples, or a translation. A turn in which the user says nothing is not sent.
    """

    version = VERSION

    def __init__(self, model: ChatModel) -> None:
        self.model = model.name
        self._model = model

    async def extract(self, turn: Turn) -> Extraction:
        """Keep the promise of FactExtractor.extract."""
        if not any(each.role is Role.USER and each.content.strip() for each in turn.messages):
            return Extraction(intent=Intent.CHITCHAT)
        return read_facts(await self._model.ask(extract_prompt(turn)), turn)
