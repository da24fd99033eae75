"""The stored events of a turn, whichever process runs it."""

import asyncio
from collections.abc import AsyncGenerator

from agent_service.domain.errors import SeqNotReached
from agent_service.domain.model import TurnEvent, TurnKey
from agent_service.ports import Clock, TurnStore

UNSTORED_POLLS = 10
"""Looks at a running turn for an event that was sent and may not be stored yet."""


async def replay(
    store: TurnStore, clock: Clock, key: TurnKey, *, after_seq: int, poll: float
) -> AsyncGenerator[TurnEvent, None]:
    """Give the events above after_seq until the turn is over, looking every poll seconds.

    Raises TurnNotFound, SeqNotReached.
    """
    ids = (key.user_id, key.conversation_id, key.turn_id)
    if after_seq:
        await _reach(store, clock, key, after_seq=after_seq, poll=poll)
    seen = after_seq
    while True:
        # one event back: the last one may be what the caller has seen already
        found = await store.events(*ids, after_seq=max(seen - 1, 0), now=clock())
        for event in found:
            if event.seq > seen:
                seen = event.seq
                yield event
        if found and found[-1].last:
            return
        await asyncio.sleep(poll)


async def _reach(
    store: TurnStore, clock: Clock, key: TurnKey, *, after_seq: int, poll: float
) -> None:
    """Wait until that event is stored. Raises SeqNotReached if it is not, and will not be."""
    ids = (key.user_id, key.conversation_id, key.turn_id)
    for _ in range(UNSTORED_POLLS):
        if await store.events(*ids, after_seq=after_seq - 1, now=clock()):
            return
        stored = await store.events(*ids, after_seq=0, now=clock())
        if stored and stored[-1].last and stored[-1].seq < after_seq:
            break
        await asyncio.sleep(poll)
    raise SeqNotReached(str(after_seq))
