"""A LearnTarget that answers as a test says."""

import asyncio
from collections import Counter

from agent_service.domain.errors import MemoryUnavailable, TurnRefused
from agent_service.domain.learning import TurnToLearn


class FakeLearnTarget:
    """Learns; away: why nobody can be told, by user_id or "" for all; refused: turns by turn_id.

    learnt is what was accepted, asked counts tries by turn_id. gate: calls wait for it, after they
    are begun. broken: turns that raise what nobody expects.
    """

    def __init__(self) -> None:
        self.learnt: list[TurnToLearn] = []
        self.asked: Counter[str] = Counter()
        self.within: list[float] = []
        self.away: dict[str, str] = {}
        self.refused: set[str] = set()
        self.broken: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.begun = asyncio.Event()
        self.told = asyncio.Event()

    async def learn(self, turn: TurnToLearn, *, within: float) -> None:
        self.asked[turn.turn_id] += 1
        self.within.append(within)
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        cause = self.away.get(turn.user_id) or self.away.get("")
        if cause:
            raise MemoryUnavailable(cause)
        if turn.turn_id in self.refused:
            message = "INVALID_ARGUMENT messages[0].content"
            raise TurnRefused(message)
        if turn.turn_id in self.broken:
            raise RuntimeError
        self.learnt.append(turn)
        self.told.set()

    @property
    def names(self) -> list[str]:
        return [turn.turn_id for turn in self.learnt]
