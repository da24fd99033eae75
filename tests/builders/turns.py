"""Turns with values that a test need not care about."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from memory_service.domain.ingest import (
    Turn,
    TurnMessage,
)
from memory_service.domain.model import Role
from tests.builders.memories import NOW


def turn(
    said: str = "I like tea.",
    *,
    user_id: str = "u1",
    conversation_id: str = "c1",
    turn_id: str = "t1",
    assistant_id: str = "",
    run_id: str = "",
    create_time: datetime = NOW,
    timezone: str = "",
) -> Turn:
    """Build a turn of one message of the user."""
    message = TurnMessage(role=Role.USER, content=said, create_time=create_time, timezone=timezone)
    return Turn(
        user_id=user_id,
        conversation_id=conversation_id,
        turn_id=turn_id,
        assistant_id=assistant_id,
        run_id=run_id,
        messages=(message,),
    )


def talk(*said: tuple[Role, str], create_time: datetime = NOW, **more: Any) -> Turn:
    """Build a turn of several messages, ten seconds apart."""
    messages = tuple(
        TurnMessage(role=role, content=words, create_time=create_time + timedelta(seconds=10 * i))
        for i, (role, words) in enumerate(said)
    )
    return replace(turn(**more), messages=messages)
