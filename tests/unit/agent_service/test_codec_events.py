"""Events, timelines and reports go to protobuf and come back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent_service.codec.events import decode_event, encode_event, event_message
from agent_service.codec.reports import decode_report, encode_report, stats_response
from agent_service.codec.timelines import (
    conversation_message,
    decode_timeline_event,
    encode_timeline_event,
    timeline_bytes,
    timeline_message,
)
from agent_service.domain.context import Reason, Status
from agent_service.domain.model import (
    ContextAssembled,
    Conversation,
    ConversationStatus,
    Delta,
    Done,
    Event,
    Failed,
    MemoryType,
    MemoryUsed,
    Recall,
    RecalledMemory,
    RecallSource,
    Started,
    ThinkingSummary,
    TurnEvent,
    Usage,
)
from agent_service.ports import (
    AssistantSaid,
    ContextStats,
    StoredTimelineEvent,
    TimelineKind,
    UserSaid,
)
from agent_service.v1 import agent_pb2 as pb
from tests.builders.agent_turns import component, report

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, UTC)
INT32_MAX = 2**31 - 1
FROM_THE_FUTURE = b"\xfa\x07\x01x"  # field 127


def memory(kind: MemoryType = MemoryType.FACT, *, content: str = "") -> RecalledMemory:
    return RecalledMemory(
        memory_id="m1",
        memory_type=kind,
        title="",
        content=content,
        score=0.75,
        score_parts={"relevance": 0.5, "pinned": 0.25},
        legs=("pinned", "semantic", "keyword"),
    )


RECALL = Recall(
    items=tuple(memory(kind) for kind in MemoryType),
    sources=tuple(
        RecallSource(
            leg="semantic",
            state=state,
            reason="timeout",
            candidates=3,
            elapsed=timedelta(milliseconds=12.5),
        )
        for state in ("ok", "degraded", "skipped", "failed")
    ),
    degraded=True,
    revision=2**40,
    stage_counts={"merged": 9},
    dropped={"budget": 2},
    pinned_total=4,
    pinned_returned=3,
)
EVENTS: list[Event] = [
    Started("c1", "t1", "r1", conversation_created=True),
    MemoryUsed(Recall()),
    MemoryUsed(RECALL),
    ContextAssembled(report(components=[component(s) for s in Status])),
    ContextAssembled(report(components=[component(reason=r) for r in Reason])),
    ThinkingSummary("想一想"),
    Delta("🙂 \u2028 data: x\r\n"),
    Usage(0, 5),
    Failed("MODEL_UNAVAILABLE", "The model did not answer."),
    Done("stop"),
    Done("cancelled", incomplete=True, actual_prompt_tokens=0),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    assert decode_event(encode_event(TurnEvent(7, event))) == TurnEvent(7, event)


def test_the_text_of_memories_is_not_sent() -> None:
    used = MemoryUsed(Recall(items=(memory(content="secret"),)))

    assert b"secret" not in encode_event(TurnEvent(1, used))


def test_words_that_the_wire_does_not_have_become_unknown() -> None:
    item = replace(memory(), legs=("telepathy",))
    used = MemoryUsed(Recall(items=(item,), sources=(RecallSource(leg="x", state="y"),)))

    back = decode_event(encode_event(TurnEvent(1, used)))
    assert back is not None
    assert isinstance(back.event, MemoryUsed)
    assert back.event.recall.items[0].legs == ("",)
    assert back.event.recall.sources[0] == RecallSource(leg="", state="")


def test_a_type_of_a_newer_version_is_unknown() -> None:
    message = event_message(TurnEvent(1, MemoryUsed(Recall(items=(memory(),)))))
    message.memory_used.items[0].memory_type = 99  # type: ignore[assignment]

    back = decode_event(message.SerializeToString())
    assert back is not None
    assert isinstance(back.event, MemoryUsed)
    assert back.event.recall.items[0].memory_type is MemoryType.UNKNOWN


@pytest.mark.parametrize(
    "message", [pb.ChatEvent(seq=3), pb.ChatEvent(seq=3, stage=pb.Stage(name="plan"))]
)
def test_an_event_of_a_kind_that_this_version_does_not_know_is_passed_over(
    message: pb.ChatEvent,
) -> None:
    assert decode_event(message.SerializeToString() + FROM_THE_FUTURE) is None


def test_text_that_protobuf_cannot_carry_is_cleaned() -> None:
    def text(event: Event) -> str:
        message = event_message(TurnEvent(1, event))
        return message.delta.text + message.thinking_summary.text + message.error.message

    for event in (Delta("a\0\ud83db"), ThinkingSummary("a\0\ud83db"), Failed("X", "a\0\ud83db")):
        assert text(event) == "a\ufffdb"


def test_counts_stop_at_the_int32_maximum() -> None:
    big = report(total_tokens=2**40, actual_prompt_tokens=2**31)
    message = event_message(TurnEvent(1, ContextAssembled(big))).context_assembled

    assert (message.total_tokens, message.actual_prompt_tokens) == (INT32_MAX, INT32_MAX)
    assert event_message(TurnEvent(1, Usage(2**31, 2**40))).usage == pb.Usage(
        prompt_tokens=INT32_MAX, completion_tokens=INT32_MAX
    )


@pytest.mark.parametrize("actual", [None, 0, 5])
def test_a_report_comes_back_as_it_was(actual: int | None) -> None:
    whole = report(components=[component()], actual_prompt_tokens=actual)

    assert decode_report(encode_report(whole)) == whole


@pytest.mark.parametrize(
    "kind",
    [
        UserSaid("你好"),
        AssistantSaid("Hi", incomplete=True),
        ThinkingSummary("x"),
        MemoryUsed(RECALL),
        ContextAssembled(report()),
        Failed("TURN_LOST", "x"),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_what_happened_comes_back_as_it_was(kind: TimelineKind) -> None:
    assert decode_timeline_event(encode_timeline_event(kind)) == kind


def test_a_timeline_event_has_its_place_turn_and_time() -> None:
    message = timeline_message(StoredTimelineEvent(5, "t1", NOON, UserSaid("a\0b")))

    assert (message.seq, message.turn_id, message.user_text.text) == (5, "t1", "ab")
    assert message.create_time.ToDatetime(UTC) == NOON
    assert timeline_bytes(StoredTimelineEvent(5, "t1", NOON, UserSaid("ab"))) == message.ByteSize()


def test_what_a_newer_version_wrote_into_a_timeline_is_sent_without_its_kind() -> None:
    newer = pb.TimelineEvent(tool_call=pb.ToolCall(name="x")).SerializeToString()

    assert decode_timeline_event(newer) is None
    message = timeline_message(StoredTimelineEvent(5, "t1", NOON, None))
    assert (message.seq, message.WhichOneof("event")) == (5, None)


def test_a_conversation_says_whether_it_has_a_title() -> None:
    told = Conversation(
        user_id="ann",
        conversation_id="c1",
        title="旅行",
        message_count=2**40,
        last_message_time=NOON,
        status=ConversationStatus.ARCHIVED,
    )

    message = conversation_message(told)
    assert (message.title, message.has_title, message.message_count) == ("旅行", True, INT32_MAX)
    assert message.last_message_time.ToDatetime(UTC) == NOON
    assert message.status == pb.CONVERSATION_STATUS_ARCHIVED
    fresh = conversation_message(Conversation(user_id="ann", conversation_id="c1"))
    assert not fresh.has_title
    assert not fresh.HasField("last_message_time")


def test_stats_have_no_report_before_the_first_turn() -> None:
    none = stats_response(ContextStats(None, 0, 0, 0, 0, 0))
    some = stats_response(ContextStats(report(), 2, 3 * 2**40, 4, 5, 6))

    assert not none.HasField("last_report")
    assert some.last_report.total_tokens == 100
    assert some.totals == pb.ContextTotals(
        turns=2, total_tokens=3 * 2**40, actual_prompt_tokens=4, dropped=5, truncated=6
    )
