"""Conversations and their timelines ↔ protobuf."""

from agent_service.codec.numbers import int32
from agent_service.codec.recalls import memory_used_message, memory_used_of
from agent_service.codec.reports import report_message, report_of
from agent_service.domain.model import (
    ContextAssembled,
    Conversation,
    ConversationStatus,
    Failed,
    MemoryUsed,
    ThinkingSummary,
)
from agent_service.domain.text import clean_text
from agent_service.ports import AssistantSaid, StoredTimelineEvent, TimelineKind, UserSaid
from agent_service.v1 import agent_pb2 as pb

STATUS_NUMBERS = {
    status: pb.ConversationStatus.Value(f"CONVERSATION_STATUS_{status.name}")
    for status in ConversationStatus
}


def conversation_message(conversation: Conversation) -> pb.Conversation:
    """Encode what a conversation is."""
    message = pb.Conversation(
        conversation_id=conversation.conversation_id,
        title=conversation.title,
        has_title=bool(conversation.title),
        message_count=int32(conversation.message_count),
        status=STATUS_NUMBERS[conversation.status],
    )
    if conversation.last_message_time is not None:
        message.last_message_time.FromDatetime(conversation.last_message_time)
    return message


def timeline_message(happened: StoredTimelineEvent) -> pb.TimelineEvent:
    """Encode one thing that happened."""
    message = pb.TimelineEvent() if happened.event is None else _message(happened.event)
    message.seq = int32(happened.seq)
    message.turn_id = happened.turn_id
    message.create_time.FromDatetime(happened.create_time)
    return message


def timeline_bytes(happened: StoredTimelineEvent) -> int:
    """Tell how long the message of one thing is."""
    return timeline_message(happened).ByteSize()


def encode_timeline_event(event: TimelineKind) -> bytes:
    """Give what happened, without its place and time, as bytes to store."""
    return _message(event).SerializeToString(deterministic=True)


def decode_timeline_event(stored: bytes) -> TimelineKind | None:
    """Read what encode_timeline_event gave; None if this version does not know its kind."""
    return _event(pb.TimelineEvent.FromString(stored))


def _message(event: TimelineKind) -> pb.TimelineEvent:
    match event:
        case UserSaid(text):
            return pb.TimelineEvent(user_text=pb.UserText(text=clean_text(text)))
        case AssistantSaid(text, incomplete):
            said = pb.AssistantText(text=clean_text(text), incomplete=incomplete)
            return pb.TimelineEvent(assistant_text=said)
        case ThinkingSummary(text):
            return pb.TimelineEvent(thinking_summary=pb.ThinkingSummary(text=clean_text(text)))
        case MemoryUsed():
            return pb.TimelineEvent(memory_used=memory_used_message(event))
        case ContextAssembled(report):
            return pb.TimelineEvent(context_assembled=report_message(report))
        case Failed(reason, text):
            return pb.TimelineEvent(error=pb.ChatError(reason=reason, message=clean_text(text)))


def _event(message: pb.TimelineEvent) -> TimelineKind | None:  # noqa: PLR0911 — one answer a kind
    match message.WhichOneof("event"):
        case "user_text":
            return UserSaid(message.user_text.text)
        case "assistant_text":
            return AssistantSaid(message.assistant_text.text, message.assistant_text.incomplete)
        case "thinking_summary":
            return ThinkingSummary(message.thinking_summary.text)
        case "memory_used":
            return memory_used_of(message.memory_used)
        case "context_assembled":
            return ContextAssembled(report_of(message.context_assembled))
        case "error":
            return Failed(message.error.reason, message.error.message)
        case _:
            return None
