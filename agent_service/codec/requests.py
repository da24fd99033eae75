"""Requests → domain. Each function raises InvalidField naming the first field that is wrong."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_service.codec import checks
from agent_service.codec.page_tokens import decode_seq_place, decode_time_place
from agent_service.codec.recalls import TYPE_OF_NUMBER
from agent_service.codec.timelines import STATUS_NUMBERS
from agent_service.domain.errors import InvalidField
from agent_service.domain.model import ChatCommand, ConversationStatus, MemoryType, TurnKey
from agent_service.v1 import agent_pb2 as pb

MAX_TYPES = 4
_THINKING: dict[int, str] = {
    pb.THINKING_UNSPECIFIED: "",
    pb.THINKING_OFF: "off",
    pb.THINKING_ON: "on",
    pb.THINKING_AUTO: "auto",
}
_STATUS_OF: dict[int, ConversationStatus | None] = {
    pb.CONVERSATION_STATUS_UNSPECIFIED: None,
    **{number: status for status, number in STATUS_NUMBERS.items()},
}
_WANTED_TYPES = {
    number: kind for number, kind in TYPE_OF_NUMBER.items() if kind is not MemoryType.UNKNOWN
}


@dataclass(frozen=True, slots=True)
class ConversationKey:
    """Which conversation of which user."""

    user_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationsPage:
    """Which page of which conversations."""

    user_id: str
    status: ConversationStatus | None
    before: tuple[datetime, str] | None
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePage:
    """Which part of a timeline: after that seq, else before that one, else the end."""

    key: ConversationKey
    after: int | None
    before: int | None
    limit: int


def chat_command(request: pb.ChatRequest, *, request_id: str) -> ChatCommand:
    """Check a ChatRequest without resume; request_id names the call."""
    user_id = checks.required_id("user_id", request.user_id)
    said = {
        "conversation_id": checks.optional_name("conversation_id", request.conversation_id),
        "message": checks.message_text("message", request.message),
        "model": checks.optional_name("model", request.model),
        "thinking": checks.choice("thinking", request.thinking, _THINKING),
        "timezone": checks.timezone("timezone", request.timezone),
        "locale": checks.locale("locale", request.locale),
    }
    max_output_tokens = checks.at_least_zero("max_output_tokens", request.max_output_tokens)
    memory_types = _memory_types(request.memory_types)
    budgets = _budgets(request.memory_budgets)
    return ChatCommand(
        user_id=user_id,
        client_message_id=checks.required_id("client_message_id", request.client_message_id),
        max_output_tokens=max_output_tokens,
        memory_types=memory_types,
        memory_budgets=budgets,
        digest=_digest(said, max_output_tokens, memory_types, budgets),
        request_id=request_id,
        **said,
    )


def conversation_key(
    request: pb.GetConversationMetaRequest | pb.GetContextStatsRequest,
) -> ConversationKey:
    """Check a request that names a conversation."""
    return _conversation_key(request.user_id, request.conversation_id)


def resume_place(request: pb.ResumeChatRequest) -> tuple[TurnKey, int]:
    """Check a ResumeChatRequest: the turn, and the last event seen."""
    key = _turn_key(request.user_id, request.conversation_id, request.turn_id)
    return key, checks.at_least_zero("after_seq", request.after_seq)


def cancelled_turn(request: pb.CancelChatRequest) -> TurnKey:
    """Check a CancelChatRequest. Cancelling is idempotent by itself; request_id is only checked."""
    checks.required_id("request_id", request.request_id)
    return _turn_key(request.user_id, request.conversation_id, request.turn_id)


def conversations_page(request: pb.ListConversationsRequest) -> ConversationsPage:
    """Check a ListConversationsRequest."""
    user_id = checks.required_id("user_id", request.user_id)
    status = checks.choice("status", request.status, _STATUS_OF)
    limit = checks.page_size(request.page_size)
    before = decode_time_place(request.page_token, *conversations_about(user_id, status))
    return ConversationsPage(user_id=user_id, status=status, before=before, limit=limit)


def conversations_about(user_id: str, status: ConversationStatus | None) -> tuple[str, ...]:
    """Give what the tokens of a list of conversations are bound to."""
    return "conversations", user_id, status or ""


def timeline_page(request: pb.GetConversationTimelineRequest) -> TimelinePage:
    """Check a GetConversationTimelineRequest. With page_token, from_end says nothing."""
    key = _conversation_key(request.user_id, request.conversation_id)
    limit = checks.page_size(request.page_size)
    start = None if request.from_end else ("after", 0)
    match decode_seq_place(request.page_token, *timeline_about(key)) or start:
        case ("after", seq):
            return TimelinePage(key=key, after=seq, before=None, limit=limit)
        case ("before", seq):
            return TimelinePage(key=key, after=None, before=seq, limit=limit)
        case _:
            return TimelinePage(key=key, after=None, before=None, limit=limit)


def timeline_about(key: ConversationKey) -> tuple[str, ...]:
    """Give what the tokens of a timeline are bound to."""
    return "timeline", key.user_id, key.conversation_id


def _conversation_key(user_id: str, conversation_id: str) -> ConversationKey:
    return ConversationKey(
        checks.required_id("user_id", user_id),
        checks.required_id("conversation_id", conversation_id),
    )


def _turn_key(user_id: str, conversation_id: str, turn_id: str) -> TurnKey:
    key = _conversation_key(user_id, conversation_id)
    return TurnKey(key.user_id, key.conversation_id, checks.required_id("turn_id", turn_id))


def _memory_types(numbers: Sequence[int]) -> tuple[MemoryType, ...]:
    field = "memory_types"
    if len(numbers) > MAX_TYPES:
        raise InvalidField(field, f"at most {MAX_TYPES}")
    wanted = (
        checks.choice(f"{field}[{index}]", number, _WANTED_TYPES)
        for index, number in enumerate(numbers)
    )
    return tuple(dict.fromkeys(wanted))


def _budgets(message: pb.TypeBudgets) -> Mapping[MemoryType, int]:
    return {
        MemoryType(field.name): checks.budget(f"memory_budgets.{field.name}", value)
        for field, value in message.ListFields()
    }


def _digest(
    said: Mapping[str, str],
    max_output_tokens: int,
    memory_types: Sequence[MemoryType],
    budgets: Mapping[MemoryType, int],
) -> bytes:
    # Of the decoded body: fields that this version does not know, and ids of the call, count not.
    body = [said, max_output_tokens, sorted(memory_types), budgets]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
