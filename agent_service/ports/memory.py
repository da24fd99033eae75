"""The memory service."""

from typing import Protocol

from agent_service.domain.model import Recall, RecallQuery


class MemoryPort(Protocol):
    """The memory service, as the agent sees it."""

    async def recall(self, query: RecallQuery, *, within: float) -> Recall:
        """Find memories within seconds.

        Never raises for an outage: that is a degraded Recall with its reasons.
        """
        ...
