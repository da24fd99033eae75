"""Having turns kept word for word, where the deployment lets users have that."""

import asyncio
from dataclasses import replace

from memory_service.domain.ingest import Extraction, Turn
from memory_service.domain.plan import Plan
from memory_service.domain.verbatim import verbatim
from memory_service.ports import Clock, NewId


class VerbatimTurns:
    """Adds to plans what is kept word for word (domain.verbatim)."""

    def __init__(self, *, clock: Clock, new_id: NewId) -> None:
        self._clock = clock
        self._new_id = new_id

    async def add(self, plan: Plan, turn: Turn, extraction: Extraction) -> None:
        """Add what the user, as the plan knows them, wants kept of a turn."""
        now = self._clock()
        # Looking for secrets takes a second for the longest turn.
        kept = await asyncio.to_thread(verbatim, turn, extraction, plan.state, now)
        rows = [replace(memory, memory_id=self._new_id()) for memory in kept.memories]
        plan.keep(rows, kept.warnings)
