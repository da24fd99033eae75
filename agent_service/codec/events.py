"""TurnEvent ↔ ChatEvent, on the wire and in the store.

Text that cannot go through protobuf and SQL whole is cleaned here (domain.text). Kinds that this
version does not know, written by a newer replica, decode to None: readers pass over them.
"""

from agent_service.codec.numbers import int32
from agent_service.codec.recalls import memory_used_message, memory_used_of
from agent_service.codec.reports import report_message, report_of
from agent_service.domain.model import (
    ContextAssembled,
    Delta,
    Done,
    Event,
    Failed,
    MemoryUsed,
    Started,
    ThinkingSummary,
    TurnEvent,
    Usage,
)
from agent_service.domain.text import clean_text
from agent_service.v1 import agent_pb2 as pb


def event_message(turn_event: TurnEvent) -> pb.ChatEvent:
    """Encode one step of a turn."""
    message = _message(turn_event.event)
    message.seq = turn_event.seq
    return message


def event_of(message: pb.ChatEvent) -> TurnEvent | None:
    """Decode one step of a turn; None if this version does not know its kind."""
    event = _event(message)
    return None if event is None else TurnEvent(message.seq, event)


def encode_event(turn_event: TurnEvent) -> bytes:
    """Give a step as bytes to store."""
    return event_message(turn_event).SerializeToString(deterministic=True)


def decode_event(stored: bytes) -> TurnEvent | None:
    """Read what encode_event gave; None if this version does not know its kind."""
    return event_of(pb.ChatEvent.FromString(stored))


def _message(event: Event) -> pb.ChatEvent:  # noqa: PLR0911 — one answer for each kind
    match event:
        case Started():
            return pb.ChatEvent(
                started=pb.ChatStarted(
                    conversation_id=event.conversation_id,
                    turn_id=event.turn_id,
                    request_id=event.request_id,
                    conversation_created=event.conversation_created,
                )
            )
        case MemoryUsed():
            return pb.ChatEvent(memory_used=memory_used_message(event))
        case ContextAssembled(report):
            return pb.ChatEvent(context_assembled=report_message(report))
        case ThinkingSummary(text):
            return pb.ChatEvent(thinking_summary=pb.ThinkingSummary(text=clean_text(text)))
        case Delta(text):
            return pb.ChatEvent(delta=pb.TextDelta(text=clean_text(text)))
        case Usage():
            return pb.ChatEvent(
                usage=pb.Usage(
                    prompt_tokens=int32(event.prompt_tokens),
                    completion_tokens=int32(event.completion_tokens),
                )
            )
        case Failed(reason, text):
            return pb.ChatEvent(error=pb.ChatError(reason=reason, message=clean_text(text)))
        case Done():
            return pb.ChatEvent(done=_done_message(event))


def _done_message(event: Done) -> pb.ChatDone:
    message = pb.ChatDone(finish_reason=event.finish_reason, incomplete=event.incomplete)
    if event.actual_prompt_tokens is not None:
        message.actual_prompt_tokens = int32(event.actual_prompt_tokens)
    return message


def _event(message: pb.ChatEvent) -> Event | None:  # noqa: PLR0911 — one answer for each kind
    match message.WhichOneof("event"):
        case "started":
            started = message.started
            return Started(
                started.conversation_id,
                started.turn_id,
                started.request_id,
                started.conversation_created,
            )
        case "memory_used":
            return memory_used_of(message.memory_used)
        case "context_assembled":
            return ContextAssembled(report_of(message.context_assembled))
        case "thinking_summary":
            return ThinkingSummary(message.thinking_summary.text)
        case "delta":
            return Delta(message.delta.text)
        case "usage":
            return Usage(message.usage.prompt_tokens, message.usage.completion_tokens)
        case "error":
            return Failed(message.error.reason, message.error.message)
        case "done":
            return _done_of(message.done)
        case _:
            return None


def _done_of(message: pb.ChatDone) -> Done:
    known = message.HasField("actual_prompt_tokens")
    return Done(
        message.finish_reason,
        message.incomplete,
        message.actual_prompt_tokens if known else None,
    )
