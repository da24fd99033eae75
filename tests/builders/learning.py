"""Turns to learn from, with everything that a test does not care about filled in."""

from datetime import datetime

from agent_service.domain.learning import Spoken, TurnToLearn
from agent_service.domain.model import Role
from tests.fakes.clock import START


def to_learn(
    turn_id: str = "t1",
    user_id: str = "ann",
    *,
    message: str = "I am vegan",
    answer: str = "Noted",
    now: datetime = START,
) -> TurnToLearn:
    spoken = [(Role.USER, message), (Role.ASSISTANT, answer)]
    return TurnToLearn(
        user_id=user_id,
        conversation_id=f"c-{turn_id}",
        turn_id=turn_id,
        request_id=turn_id,
        messages=[
            Spoken(role=role, content=content, create_time=now)
            for role, content in spoken
            if content
        ],
    )
