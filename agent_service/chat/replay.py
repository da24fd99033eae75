"""The stored events of a turn, whichever process runs it."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from agent_service.domain.errors import SeqNotReached
from agent_service.domain.model import TurnEvent
from agent_service.ports import Clock, TurnStore

UNSTORED_POLLS = 10
"""Looks at a running turn for an event that was sent and may not be stored yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlace:
    """Which turn, and whose."""

    user_id: str
    conversation_id: str
    turn_id: str


async def replay(
    store: TurnStore, clock: Clock, place: TurnPlace, *, after_seq: int, poll: float
) -> AsyncGenerator[TurnEvent, None]:
    """Give the events above after_seq until the turn is over, looking every poll seconds.

    Raises TurnNotFound, SeqNotReached.
    """
    key = (place.user_id, place.conversation_id, place.turn_id)
    if after_seq:
        await _reach(store, clock, place, after_seq=after_seq, poll=poll)
    seen = after_seq
    while True:
        # one event back: the last one may be what the caller has seen already
        found = await store.events(*key, after_seq=max(seen - 1, 0), now=clock())
        for event in found:
            if event.seq > seen:
                seen = event.seq
                yield event
        if found and found[-1].last:
            return
        await asyncio.sleep(poll)


async def _reach(
    store: TurnStore, clock: Clock, place: TurnPlace, *, after_seq: int, poll: float
) -> None:
    """Wait until that event is stored. Raises SeqNotReached if it is not, and will not be."""
    key = (place.user_id, place.conversation_id, place.turn_id)
    for _ in range(UNSTORED_POLLS):
        if await store.events(*key, after_seq=after_seq - 1, now=clock()):
            return
        stored = await store.events(*key, after_seq=0, now=clock())
        if stored and stored[-1].last and stored[-1].seq < after_seq:
            break
        await asyncio.sleep(poll)
    raise SeqNotReached(str(after_seq))
