"""A MemoryPort that answers as a test says."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from agent_service.domain.model import Recall, RecalledMemory, RecallQuery, RecallSource


class FakeMemory:
    """Gives items; down: fails at once; hangs: fails when the time given is over."""

    def __init__(self, *items: RecalledMemory) -> None:
        self.items: Sequence[RecalledMemory] = items
        self.down = False
        self.hangs = False
        self.queries: list[RecallQuery] = []

    async def recall(self, query: RecallQuery, *, within: float) -> Recall:
        self.queries.append(query)
        if self.hangs:
            await asyncio.sleep(within)
        if self.down or self.hangs:
            reason = "timeout" if self.hangs else "unavailable"
            return Recall(
                sources=[
                    RecallSource(leg=leg, state="failed", reason=reason, elapsed=timedelta(0))
                    for leg in ("pinned", "semantic", "keyword")
                ],
                degraded=True,
            )
        return Recall(items=self.items, sources=[RecallSource(leg="pinned", state="ok")])
