"""What requests are taken, and which field is named when one is not."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from agent_service.codec import requests
from agent_service.domain.errors import InvalidRequest
from agent_service.domain.model import ChatCommand, ConversationStatus, MemoryType, TurnKey
from agent_service.v1 import agent_pb2 as pb


def chat(**fields: Any) -> pb.ChatRequest:
    return pb.ChatRequest(
        **{"user_id": "ann", "client_message_id": "m1", "message": "Hello", **fields}
    )


def command(**fields: Any) -> ChatCommand:
    return requests.chat_command(chat(**fields), request_id="r1")


def refused(call: Callable[[], object]) -> str:
    (field,) = all_refused(call)
    return field


def all_refused(call: Callable[[], object]) -> list[str]:
    with pytest.raises(InvalidRequest) as caught:
        call()
    return [violation.field for violation in caught.value.violations]


def test_a_plain_chat_means_the_servers_settings() -> None:
    asked = command()

    assert (asked.user_id, asked.conversation_id, asked.message) == ("ann", "", "Hello")
    assert (asked.model, asked.thinking, asked.max_output_tokens, asked.timezone) == ("", "", 0, "")
    assert (asked.memory_types, asked.memory_budgets, asked.request_id) == ((), {}, "r1")


def test_a_full_chat_is_taken_as_it_is() -> None:
    asked = command(
        conversation_id="c 1",
        model="m",
        thinking=pb.THINKING_AUTO,
        max_output_tokens=7,
        timezone="Asia/Shanghai",
        memory_types=[pb.MEMORY_TYPE_FACT, pb.MEMORY_TYPE_CONSTRAINT, pb.MEMORY_TYPE_FACT],
        memory_budgets=pb.TypeBudgets(constraint=0, todo_hint=200),
        locale="zh-Hans-CN",
    )

    assert (asked.conversation_id, asked.model, asked.thinking) == ("c 1", "m", "auto")
    assert (asked.max_output_tokens, asked.timezone, asked.locale) == (
        7,
        "Asia/Shanghai",
        "zh-Hans-CN",
    )
    assert asked.memory_types == (MemoryType.FACT, MemoryType.CONSTRAINT)
    assert asked.memory_budgets == {MemoryType.CONSTRAINT: 0, MemoryType.TODO_HINT: 200}


@pytest.mark.parametrize(
    "name",
    ["a'b", 'a"b', "a\\b", "%", "*", "用户", "👩‍🚀", "ann ", " ", "x" * 128, "é" * 64, "\u2028"],
)
def test_odd_ids_are_ordinary_ids(name: str) -> None:
    asked = command(user_id=name, conversation_id=name, client_message_id=name)

    assert (asked.user_id, asked.conversation_id, asked.client_message_id) == (name,) * 3


@pytest.mark.parametrize(
    "name", ["a\0", "\n", "a\tb", "\x7f", "\x85", "x" * 129, "é" * 65, "👩" * 33]
)
@pytest.mark.parametrize("field", ["user_id", "conversation_id", "client_message_id", "model"])
def test_ids_are_short_and_without_control_characters(name: str, field: str) -> None:
    assert refused(lambda: command(**{field: name})) == field


@pytest.mark.parametrize("field", ["user_id", "client_message_id"])
def test_an_empty_scope_is_refused(field: str) -> None:
    assert refused(lambda: command(**{field: ""})) == field


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\u3000", "x" * 32769, "长" * 10923])
def test_a_message_is_neither_blank_nor_too_long(text: str) -> None:
    assert refused(lambda: command(message=text)) == "message"


@pytest.mark.parametrize("text", ["x" * 32768, "长" * 10922, " a\r\n", "🙂👩‍🚀\u2028"])
def test_a_message_is_kept_byte_for_byte(text: str) -> None:
    assert command(message=text).message == text


def test_nul_is_taken_out_of_a_message_before_it_is_measured() -> None:
    assert command(message="a\0b" + "\0" * 40_000).message == "ab"


@pytest.mark.parametrize(
    "zone", ["", "UTC", "Asia/Shanghai", "+08:00", "-03:30", "+14:00", "-00:00"]
)
def test_a_timezone_is_a_name_or_an_offset(zone: str) -> None:
    assert command(timezone=zone).timezone == zone


@pytest.mark.parametrize(
    "zone",
    [
        "Mars",
        "../etc/passwd",
        "/etc/passwd",
        "asia",
        "+8",
        "08:00",
        "+14:01",
        "+08:60",
        "+٠٨:٠٠",
        "\0",
    ],
)
def test_any_other_timezone_is_refused(zone: str) -> None:
    assert refused(lambda: command(timezone=zone)) == "timezone"


@pytest.mark.parametrize("tag", ["", "zh", "zh-CN", "zh_CN", "en-US-x-y", "sl-rozaj-biske-1994"])
def test_a_locale_is_a_language_tag(tag: str) -> None:
    assert command(locale=tag).locale == tag


@pytest.mark.parametrize("tag", ["中文", "-", "zh-", "z h", "a" * 9, "zh" + "-abcdefgh" * 15])
def test_any_other_locale_is_refused(tag: str) -> None:
    assert refused(lambda: command(locale=tag)) == "locale"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"thinking": 9}, "thinking"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"memory_types": [1] * 5}, "memory_types"),
        ({"memory_types": [1, 0]}, "memory_types[1]"),
        ({"memory_types": [9]}, "memory_types[0]"),
        ({"memory_budgets": pb.TypeBudgets(fact=201)}, "memory_budgets.fact"),
        ({"memory_budgets": pb.TypeBudgets(preference=-1)}, "memory_budgets.preference"),
    ],
)
def test_the_field_that_is_wrong_is_named(fields: dict[str, Any], named: str) -> None:
    assert refused(lambda: command(**fields)) == named


def test_all_fields_that_are_wrong_are_named() -> None:
    wrong = {
        "user_id": "",
        "conversation_id": "\n",
        "message": " ",
        "thinking": 9,
        "timezone": "Mars",
        "client_message_id": "",
        "memory_types": [9, 1, 0],
        "memory_budgets": pb.TypeBudgets(fact=201, preference=-1),
    }
    assert all_refused(lambda: command(**wrong)) == [
        "user_id",
        "conversation_id",
        "message",
        "thinking",
        "timezone",
        "client_message_id",
        "memory_types[0]",
        "memory_types[2]",
        "memory_budgets.preference",
        "memory_budgets.fact",
    ]
    page = pb.ListConversationsRequest(status=9, page_size=-1, page_token="none")  # type: ignore[arg-type]
    assert all_refused(lambda: requests.conversations_page(page)) == [
        "user_id",
        "status",
        "page_size",
        "page_token",
    ]


def test_two_bodies_have_two_digests_and_the_ids_of_the_call_are_no_part_of_them() -> None:
    same = requests.chat_command(chat(client_message_id="m2", user_id="bob"), request_id="r2")
    others = [
        command(conversation_id="c"),
        command(message="Hello!"),
        command(model="m"),
        command(thinking=pb.THINKING_ON),
        command(max_output_tokens=1),
        command(timezone="UTC"),
        command(memory_types=[pb.MEMORY_TYPE_FACT]),
        command(memory_budgets=pb.TypeBudgets(fact=0)),
        command(memory_budgets=pb.TypeBudgets(fact=1)),
        command(locale="en"),
    ]

    assert same.digest == command().digest
    assert len({asked.digest for asked in [same, *others]}) == len(others) + 1


def test_an_unknown_field_does_not_make_another_body() -> None:
    known = chat()
    with_more = pb.ChatRequest.FromString(known.SerializeToString() + b"\xfa\x07\x01x")

    assert requests.chat_command(with_more, request_id="r").digest == command().digest


@pytest.mark.parametrize("field", ["user_id", "conversation_id"])
def test_a_conversation_is_named_by_both_ids(field: str) -> None:
    whole = {"user_id": "ann", "conversation_id": "c1"}
    assert requests.conversation_key(pb.GetConversationMetaRequest(**whole)) == (
        requests.ConversationKey("ann", "c1")
    )
    part = {**whole, field: ""}
    assert refused(lambda: requests.conversation_key(pb.GetContextStatsRequest(**part))) == field
    timeline = ParseDict(part, pb.GetConversationTimelineRequest())
    assert refused(lambda: requests.timeline_page(timeline)) == field


def test_resuming_names_a_turn_and_the_last_event_seen() -> None:
    whole: dict[str, Any] = {
        "user_id": "ann",
        "conversation_id": "c1",
        "turn_id": "t1",
        "after_seq": 3,
    }
    key = TurnKey("ann", "c1", "t1")

    assert requests.resume_place(pb.ResumeChatRequest(**whole)) == (key, 3)
    for field, wrong in [("turn_id", ""), ("after_seq", -1), ("user_id", "\n")]:
        request = pb.ResumeChatRequest(**{**whole, field: wrong})
        assert refused(partial(requests.resume_place, request)) == field


def test_cancelling_requires_a_request_id() -> None:
    whole = {"user_id": "ann", "conversation_id": "c1", "turn_id": "t1", "request_id": "r"}

    assert requests.cancelled_turn(pb.CancelChatRequest(**whole)).turn_id == "t1"
    for field in whole:
        request = pb.CancelChatRequest(**{**whole, field: ""})
        assert refused(partial(requests.cancelled_turn, request)) == field


@pytest.mark.parametrize(
    ("size", "limit"), [(0, 50), (1, 1), (200, 200), (201, 200), (2**31 - 1, 200)]
)
def test_page_sizes_have_a_default_and_a_most(size: int, limit: int) -> None:
    listed = pb.ListConversationsRequest(user_id="ann", page_size=size)
    timeline = pb.GetConversationTimelineRequest(
        user_id="ann", conversation_id="c1", page_size=size
    )

    assert requests.conversations_page(listed).limit == limit
    assert requests.timeline_page(timeline).limit == limit


def test_a_page_size_below_zero_is_refused() -> None:
    listed = pb.ListConversationsRequest(user_id="ann", page_size=-1)

    assert refused(lambda: requests.conversations_page(listed)) == "page_size"


def test_conversations_are_filtered_by_a_known_status() -> None:
    def status(number: int) -> ConversationStatus | None:
        request = pb.ListConversationsRequest(user_id="ann", status=number)  # type: ignore[arg-type]
        return requests.conversations_page(request).status

    assert status(0) is None
    assert status(2) is ConversationStatus.ARCHIVED
    assert refused(lambda: status(3)) == "status"


def test_a_timeline_starts_at_either_end() -> None:
    def place(**fields: Any) -> tuple[int | None, int | None]:
        request = pb.GetConversationTimelineRequest(user_id="ann", conversation_id="c1", **fields)
        page = requests.timeline_page(request)
        return page.after, page.before

    assert place() == (0, None)
    assert place(from_end=True) == (None, None)
