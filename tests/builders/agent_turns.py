"""Turns to open and to close, with everything that a test does not care about filled in."""

from collections.abc import Sequence
from datetime import UTC, datetime

from agent_service.domain.context import ComponentReport, ContextReport, Reason, Status
from agent_service.domain.model import Done, Event, Failed, TurnEvent
from agent_service.ports import NewTurn, TurnClosing

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, UTC)


def new_turn(
    turn_id: str = "t1",
    *,
    user_id: str = "ann",
    conversation_id: str = "c1",
    client_message_id: str = "",
    digest: bytes = b"body",
    text: str = "Hello",
    timezone: str = "",
    now: datetime = NOON,
) -> NewTurn:
    return NewTurn(
        user_id=user_id,
        conversation_id=conversation_id,
        conversation_is_new=False,
        client_message_id=client_message_id or f"m-{turn_id}",
        digest=digest,
        turn_id=turn_id,
        request_id=f"r-{turn_id}",
        text=text,
        timezone=timezone,
        now=now,
    )


def events(*kinds: Event, after: int = 1) -> list[TurnEvent]:
    return [TurnEvent(seq, kind) for seq, kind in enumerate(kinds, after + 1)]


def closing(
    *kinds: Event,
    after: int = 1,
    answer: str = "Hi",
    incomplete: bool = False,
    report: ContextReport | None = None,
    now: datetime = NOON,
) -> TurnClosing:
    return TurnClosing(
        events=events(*(kinds or (Done("stop", incomplete),)), after=after),
        answer=answer,
        incomplete=incomplete,
        report=report,
        now=now,
    )


def failed_closing(answer: str = "", *, after: int = 1) -> TurnClosing:
    failure = Failed("MODEL_UNAVAILABLE", "The model did not answer.")
    return closing(failure, after=after, answer=answer, incomplete=True)


def report(
    *,
    total_tokens: int = 100,
    actual_prompt_tokens: int | None = 104,
    dropped: int = 1,
    truncated: int = 2,
    components: Sequence[ComponentReport] = (),
) -> ContextReport:
    return ContextReport(
        window=32768,
        reserved_output=4096,
        usable=28000,
        total_tokens=total_tokens,
        overhead_tokens=7,
        counter="o200k",
        exact=True,
        stable_prefix_tokens=50,
        components=tuple(components),
        dropped=dropped,
        truncated=truncated,
        assemble_micros=1234,
        actual_prompt_tokens=actual_prompt_tokens,
        model_call=1,
    )


def component(status: Status = Status.FULL, reason: Reason = Reason.NONE) -> ComponentReport:
    return ComponentReport(
        id="facts",
        kind="facts",
        priority=60,
        status=status,
        reason=reason,
        original_tokens=30,
        tokens=20,
        original_exact=True,
        items_in=5,
        items_kept=3,
        zone="volatile",
        sha256=b"\x00\xff" * 16,
    )
