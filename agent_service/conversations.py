"""Conversations as their users read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_service.domain.model import Conversation, ConversationStatus
from agent_service.ports import ContextStats, ConversationStore, StoredTimelineEvent

MAX_ANSWER_BYTES = 3_500_000
"""A page ends early rather than come near gRPC's 4 MiB."""


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Conversations, newest first, and the place of the last one if more follow."""

    conversations: Sequence[Conversation]
    next_place: tuple[datetime, str] | None


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """Events in seq order.

    later is the seq after which there are more, earlier the seq before which there are more; None:
    there are none, or none yet.
    """

    events: Sequence[StoredTimelineEvent]
    earlier: int | None
    later: int | None


class Conversations:
    """Reads conversations; size_of tells how many bytes of an answer an event takes."""

    def __init__(
        self, store: ConversationStore, size_of: Callable[[StoredTimelineEvent], int]
    ) -> None:
        self._store = store
        self._size_of = size_of

    async def meta(self, user_id: str, conversation_id: str) -> Conversation:
        """Give what a conversation is. Raises ConversationNotFound."""
        return await self._store.meta(user_id, conversation_id)

    async def page(
        self,
        user_id: str,
        *,
        status: ConversationStatus | None,
        before: tuple[datetime, str] | None,
        limit: int,
    ) -> ConversationPage:
        """Give at most limit conversations by last_message_time desc, id desc, after that place."""
        found = await self._store.page(user_id, status=status, before=before, limit=limit + 1)
        kept = found[:limit]
        if len(found) <= limit or kept[-1].last_message_time is None:
            return ConversationPage(kept, None)
        return ConversationPage(kept, (kept[-1].last_message_time, kept[-1].conversation_id))

    async def timeline(
        self,
        user_id: str,
        conversation_id: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int,
    ) -> TimelinePart:
        """Give the first limit events with seq > after, or else the last with seq < before.

        Neither: the last of all. At most MAX_ANSWER_BYTES, but one event at least if there is one.
        Raises ConversationNotFound.
        """
        found = await self._store.timeline(
            user_id, conversation_id, after=after, before=before, limit=limit + 1
        )
        if after is not None:
            kept = self._fitting(found[:limit])
            return _part(kept, more_follow=len(kept) < len(found))
        kept = self._fitting(found[::-1][:limit])[::-1]
        return _part(kept, more_follow=before is not None)

    async def context_stats(self, user_id: str, conversation_id: str) -> ContextStats:
        """Give how much context was used. Raises ConversationNotFound."""
        return await self._store.context_stats(user_id, conversation_id)

    def _fitting(self, events: Sequence[StoredTimelineEvent]) -> Sequence[StoredTimelineEvent]:
        room = MAX_ANSWER_BYTES
        for count, event in enumerate(events):
            room -= self._size_of(event)
            if room < 0:
                return events[: max(count, 1)]
        return events


def _part(events: Sequence[StoredTimelineEvent], *, more_follow: bool) -> TimelinePart:
    if not events:
        return TimelinePart(events, None, None)
    # Seq counts from 1 without gaps, so there is something before any other.
    earlier = events[0].seq if events[0].seq > 1 else None
    return TimelinePart(events, earlier, events[-1].seq if more_follow else None)
