"""The extractor that needs no model: rules for explicit statements, English and Chinese."""

import asyncio

from memory_service.domain.ingest import Extraction, Turn
from memory_service.domain.rules.read import read_turn


class RulesExtractor:
    """Implements ports.learning.FactExtractor. The same turn always gives the same facts."""

    model = ""
    version = "rules-1"

    async def extract(self, turn: Turn) -> Extraction:
        """Read what the user stated outright; what needs understanding is left out."""
        return await asyncio.to_thread(read_turn, turn)  # a long turn may take half a second
