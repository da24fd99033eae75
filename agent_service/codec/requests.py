"""Requests → domain. Each function raises InvalidRequest naming all fields that are wrong."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_service.codec.checks import Checks
from agent_service.codec.page_tokens import decode_seq_place, decode_time_place
from agent_service.codec.recalls import TYPE_OF_NUMBER
from agent_service.codec.timelines import STATUS_NUMBERS
from agent_service.domain.model import ChatCommand, ConversationStatus, MemoryType, TurnKey
from agent_service.v1 import agent_pb2 as pb

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
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    said = {
        "conversation_id": check.name("conversation_id", request.conversation_id),
        "message": check.message("message", request.message),
        "model": check.name("model", request.model),
        "thinking": check.word("thinking", request.thinking, _THINKING),
        "timezone": check.timezone("timezone", request.timezone),
        "locale": check.locale("locale", request.locale),
    }
    client_message_id = check.identifier("client_message_id", request.client_message_id)
    max_output_tokens = check.not_negative("max_output_tokens", request.max_output_tokens)
    memory_types = check.words("memory_types", request.memory_types, _WANTED_TYPES)
    budgets = _budgets(check, request.memory_budgets)
    check.passed()
    return ChatCommand(
        user_id=user_id,
        client_message_id=client_message_id,
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
    check = Checks()
    key = _conversation_key(check, request)
    check.passed()
    return key


def resume_place(request: pb.ResumeChatRequest) -> tuple[TurnKey, int]:
    """Check a ResumeChatRequest: the turn, and the last event seen."""
    check = Checks()
    key = _turn_key(check, request)
    after_seq = check.not_negative("after_seq", request.after_seq)
    check.passed()
    return key, after_seq


def cancelled_turn(request: pb.CancelChatRequest) -> TurnKey:
    """Check a CancelChatRequest. Cancelling is idempotent by itself; request_id is only checked."""
    check = Checks()
    key = _turn_key(check, request)
    check.identifier("request_id", request.request_id)
    check.passed()
    return key


def conversations_page(request: pb.ListConversationsRequest) -> ConversationsPage:
    """Check a ListConversationsRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    status = check.word("status", request.status, _STATUS_OF)
    limit = check.page_size(request.page_size)
    about = conversations_about(user_id, status)
    before = check.place(decode_time_place, request.page_token, *about)
    check.passed()
    return ConversationsPage(user_id=user_id, status=status, before=before, limit=limit)


def conversations_about(user_id: str, status: ConversationStatus | None) -> tuple[str, ...]:
    """Give what the tokens of a list of conversations are bound to."""
    return "conversations", user_id, status or ""


def timeline_page(request: pb.GetConversationTimelineRequest) -> TimelinePage:
    """Check a GetConversationTimelineRequest. With page_token, from_end says nothing."""
    check = Checks()
    key = _conversation_key(check, request)
    limit = check.page_size(request.page_size)
    place = check.place(decode_seq_place, request.page_token, *timeline_about(key))
    check.passed()
    match place or (None if request.from_end else ("after", 0)):
        case ("after", seq):
            return TimelinePage(key=key, after=seq, before=None, limit=limit)
        case ("before", seq):
            return TimelinePage(key=key, after=None, before=seq, limit=limit)
        case _:
            return TimelinePage(key=key, after=None, before=None, limit=limit)


def timeline_about(key: ConversationKey) -> tuple[str, ...]:
    """Give what the tokens of a timeline are bound to."""
    return "timeline", key.user_id, key.conversation_id


def _conversation_key(check: Checks, request: Any) -> ConversationKey:
    return ConversationKey(
        check.identifier("user_id", request.user_id),
        check.identifier("conversation_id", request.conversation_id),
    )


def _turn_key(check: Checks, request: Any) -> TurnKey:
    key = _conversation_key(check, request)
    turn_id = check.identifier("turn_id", request.turn_id)
    return TurnKey(key.user_id, key.conversation_id, turn_id)


def _budgets(check: Checks, message: pb.TypeBudgets) -> Mapping[MemoryType, int]:
    return {
        MemoryType(field.name): check.budget(f"memory_budgets.{field.name}", value)
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
