"""One RPC = decode → use case → encode."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import grpc

from agent_service.codec import requests
from agent_service.codec.events import event_message
from agent_service.codec.page_tokens import encode_seq_place, encode_time_place
from agent_service.codec.reports import stats_response
from agent_service.codec.timelines import conversation_message, timeline_message
from agent_service.conversations import Conversations
from agent_service.domain.errors import DomainError
from agent_service.domain.model import ChatCommand, TurnEvent
from agent_service.handlers.failures import failed_turn, failure_of, not_offered
from agent_service.handlers.later import Later
from agent_service.v1 import agent_pb2 as pb
from rpc.request import request_id

_Context = grpc.aio.ServicerContext[Any, Any]
T = TypeVar("T")


class Turns(Protocol):
    """The turns of agent_service.chat. Closing an iterator is what a client does that leaves."""

    def run(self, command: ChatCommand) -> AsyncIterator[TurnEvent]:
        """Run a turn, or give the events of the one that the client_message_id stands for."""
        ...

    def resume(
        self, user_id: str, conversation_id: str, turn_id: str, after_seq: int
    ) -> AsyncIterator[TurnEvent]:
        """Give the events above after_seq, until the turn is over."""
        ...

    async def cancel(self, user_id: str, conversation_id: str, turn_id: str) -> bool:
        """Stop a running turn; False if it had ended."""
        ...


class AgentHandlers(Later):
    """agent_service.v1.AgentService."""

    def __init__(self, turns: Turns, conversations: Conversations) -> None:
        self._turns = turns
        self._conversations = conversations

    async def Chat(  # noqa: N802 — the proto's name
        self, request: pb.ChatRequest, context: _Context
    ) -> AsyncIterator[pb.ChatResponse]:
        """Run a turn. What fails after its first event is its last event, and the RPC ends OK."""
        del context
        _refuse_what_comes_later(request)
        command = requests.chat_command(request, request_id=request_id())
        last_seq = 0
        try:
            async with closed_at_the_end(self._turns.run(command)) as events:
                async for event in events:
                    last_seq = event.seq
                    yield pb.ChatResponse(event=event_message(event))
        except DomainError as error:
            if not last_seq or failure_of(error) is None:
                raise
            last = TurnEvent(last_seq + 1, failed_turn(error))
            yield pb.ChatResponse(event=event_message(last))

    async def ResumeChat(  # noqa: N802 — the proto's name
        self, request: pb.ResumeChatRequest, context: _Context
    ) -> AsyncIterator[pb.ResumeChatResponse]:
        """Stream the rest of a turn. A failure fails the RPC: the turn goes on, and so may this."""
        del context
        key, after_seq = requests.resume_place(request)
        rest = self._turns.resume(key.user_id, key.conversation_id, key.turn_id, after_seq)
        async with closed_at_the_end(rest) as events:
            async for event in events:
                yield pb.ResumeChatResponse(event=event_message(event))

    async def CancelChat(  # noqa: N802 — the proto's name
        self, request: pb.CancelChatRequest, context: _Context
    ) -> pb.CancelChatResponse:
        """Stop a running turn."""
        del context
        key = requests.cancelled_turn(request)
        cancelled = await self._turns.cancel(key.user_id, key.conversation_id, key.turn_id)
        return pb.CancelChatResponse(cancelled=cancelled)

    async def GetConversationMeta(  # noqa: N802 — the proto's name
        self, request: pb.GetConversationMetaRequest, context: _Context
    ) -> pb.GetConversationMetaResponse:
        """Give what a conversation is."""
        del context
        key = requests.conversation_key(request)
        meta = await self._conversations.meta(key.user_id, key.conversation_id)
        return pb.GetConversationMetaResponse(conversation=conversation_message(meta))

    async def ListConversations(  # noqa: N802 — the proto's name
        self, request: pb.ListConversationsRequest, context: _Context
    ) -> pb.ListConversationsResponse:
        """List conversations, newest first."""
        del context
        wanted = requests.conversations_page(request)
        page = await self._conversations.page(
            wanted.user_id, status=wanted.status, before=wanted.before, limit=wanted.limit
        )
        about = requests.conversations_about(wanted.user_id, wanted.status)
        return pb.ListConversationsResponse(
            conversations=[conversation_message(found) for found in page.conversations],
            next_page_token=encode_time_place(page.next_place, *about),
        )

    async def GetConversationTimeline(  # noqa: N802 — the proto's name
        self, request: pb.GetConversationTimelineRequest, context: _Context
    ) -> pb.GetConversationTimelineResponse:
        """List what happened, by seq."""
        del context
        wanted = requests.timeline_page(request)
        part = await self._conversations.timeline(
            wanted.key.user_id,
            wanted.key.conversation_id,
            after=wanted.after,
            before=wanted.before,
            limit=wanted.limit,
        )
        about = requests.timeline_about(wanted.key)
        return pb.GetConversationTimelineResponse(
            events=[timeline_message(happened) for happened in part.events],
            next_page_token=encode_seq_place("after", part.later, *about),
            previous_page_token=encode_seq_place("before", part.earlier, *about),
        )

    async def GetContextStats(  # noqa: N802 — the proto's name
        self, request: pb.GetContextStatsRequest, context: _Context
    ) -> pb.GetContextStatsResponse:
        """Give how much context was used."""
        del context
        key = requests.conversation_key(request)
        stats = await self._conversations.context_stats(key.user_id, key.conversation_id)
        return stats_response(stats)


@asynccontextmanager
async def closed_at_the_end(events: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close events when the block ends, however it ends, and not at some later time."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _refuse_what_comes_later(request: pb.ChatRequest) -> None:
    asked = {"resume": request.HasField("resume"), "always_execute": request.always_execute}
    for what, is_asked in asked.items():
        if is_asked:
            raise not_offered(what)
