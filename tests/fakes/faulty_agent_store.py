"""The store in memory, with outages and waits that a test plans."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from agent_service.domain.errors import LeaseLost, StoreUnavailable
from agent_service.domain.model import TurnEvent
from agent_service.ports import (
    DialogueMessage,
    NewTurn,
    TurnClosing,
    TurnKnown,
    TurnLease,
    TurnOpened,
)
from tests.fakes.agent_store import FakeAgentStore
from tests.fakes.clock import FakeIds

FOREVER = 10**9
"""Calls that all fail."""


class FaultyAgentStore(FakeAgentStore):
    """away: how many of the next calls of a method fail; lost: leases are not ours any more.

    gates: a call of that method waits until its event is set. calls counts calls by method.
    """

    def __init__(self) -> None:
        super().__init__(FakeIds())
        self.away: Counter[str] = Counter()
        self.lost: set[str] = set()
        self.gates: dict[str, asyncio.Event] = {}
        self.broken: dict[str, Exception] = {}
        self.calls: Counter[str] = Counter()
        self._called = asyncio.Event()

    async def called(self, method: str, times: int = 1) -> None:
        """Wait until the method has been called so many times in all."""
        while self.calls[method] < times:
            self._called.clear()
            await self._called.wait()

    async def _meet(self, method: str) -> None:
        self.calls[method] += 1
        self._called.set()
        if method in self.gates:
            await self.gates[method].wait()
        if method in self.broken:
            raise self.broken[method]
        if method in self.lost:
            raise LeaseLost
        if self.away[method] > 0:
            self.away[method] -= 1
            raise StoreUnavailable

    async def open(self, turn: NewTurn) -> TurnOpened | TurnKnown:
        await self._meet("open")
        return await super().open(turn)

    async def append(self, lease: TurnLease, events: Sequence[TurnEvent]) -> None:
        await self._meet("append")
        await super().append(lease, events)

    async def heartbeat(self, lease: TurnLease, now: datetime) -> bool:
        await self._meet("heartbeat")
        return await super().heartbeat(lease, now)

    async def close(self, lease: TurnLease, closing: TurnClosing) -> None:
        await self._meet("close")
        await super().close(lease, closing)

    async def close_expired(self, now: datetime, *, limit: int) -> int:
        await self._meet("close_expired")
        return await super().close_expired(now, limit=limit)

    async def recent_messages(
        self, user_id: str, conversation_id: str, *, before_turn: str, limit: int
    ) -> Sequence[DialogueMessage]:
        await self._meet("recent_messages")
        return await super().recent_messages(
            user_id, conversation_id, before_turn=before_turn, limit=limit
        )

    async def set_title_if_empty(self, user_id: str, conversation_id: str, title: str) -> None:
        await self._meet("set_title_if_empty")
        await super().set_title_if_empty(user_id, conversation_id, title)
