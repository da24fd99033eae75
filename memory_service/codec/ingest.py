"""Turns to learn from, and what came of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memory_service.codec.checks import Checks
from memory_service.codec.memories import memory_message
from memory_service.codec.words import ACTION_OF, ROLES
from memory_service.domain.ingest import Decision, IngestOutcome, Turn, TurnMessage
from memory_service.domain.zones import is_zone
from memory_service.v1 import memory_pb2 as pb

MAX_MESSAGES = 64
MAX_MESSAGE_BYTES = 32 * 1024
MAX_TURN_BYTES = 256 * 1024


def read_turn(check: Checks, request: pb.IngestTurnRequest | pb.DryRunIngestRequest) -> Turn:
    """Read the turn of a request; one that is decided about only has no id."""
    turn_id = "" if isinstance(request, pb.DryRunIngestRequest) else request.turn_id
    return Turn(
        user_id=check.identifier("user_id", request.user_id),
        conversation_id=check.name("conversation_id", request.conversation_id),
        turn_id=check.name("turn_id", turn_id),
        messages=_messages(check, request.messages),
        assistant_id=check.name("assistant_id", request.assistant_id),
        run_id=check.name("run_id", request.run_id),
    )


def dry_run_request(request: pb.DryRunIngestRequest) -> Turn:
    """Read DryRunIngest. Raises InvalidRequest."""
    check = Checks()
    turn = read_turn(check, request)
    check.passed()
    return turn


def outcome_message(outcome: IngestOutcome) -> pb.IngestOutcome:
    """Give what came of a turn."""
    return pb.IngestOutcome(
        message_intent=outcome.intent,
        decisions=[decision_message(decision) for decision in outcome.decisions],
        warnings=outcome.warnings,
    )


def decision_message(decision: Decision) -> pb.Decision:
    """Give what becomes of one fact."""
    return pb.Decision(
        fact=memory_message(decision.fact),
        action=ACTION_OF[decision.action],
        memory_id=decision.memory_id,
        superseded_ids=decision.superseded_ids,
        reason=decision.reason.value,
        candidates=[
            pb.DecisionCandidate(
                memory_id=candidate.memory_id,
                score=candidate.score,
                relation=candidate.relation.value,
            )
            for candidate in decision.candidates
        ],
        model=decision.model,
        prompt_version=decision.prompt_version,
    )


def _messages(check: Checks, given: Sequence[pb.TurnMessage]) -> tuple[TurnMessage, ...]:
    check.count("messages", len(given), 1, MAX_MESSAGES)
    messages = tuple(
        _message(check, f"messages[{i}].", message)
        for i, message in enumerate(given[:MAX_MESSAGES])
    )
    if sum(len(message.content.encode()) for message in messages) > MAX_TURN_BYTES:
        check.refuse("messages", f"at most {MAX_TURN_BYTES} bytes of content together")
    return messages


def _message(check: Checks, at: str, message: pb.TurnMessage) -> TurnMessage:
    if message.timezone and not is_zone(message.timezone):
        check.refuse(f"{at}timezone", "must be an IANA name or an offset such as +08:00")
    return TurnMessage(
        role=check.word(f"{at}role", message.role, ROLES),
        content=check.text(f"{at}content", message.content, MAX_MESSAGE_BYTES),
        create_time=_create_time(check, at, message),
        timezone=message.timezone,
    )


def _create_time(check: Checks, at: str, message: Any) -> datetime:
    if not message.HasField("create_time"):
        check.refuse(f"{at}create_time", "is required")
    return check.time(f"{at}create_time", message.create_time)
