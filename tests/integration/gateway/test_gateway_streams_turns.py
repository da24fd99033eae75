"""Chat and resume as server-sent events, and every way in which they end (A64, A66, A67, A68)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx
import pytest

from agent_service.v1 import agent_pb2 as pb
from rpc.errors import Failure, Violation
from tests.services.running_gateway import PATIENCE, RunningGateway
from tests.services.scripted_agent import done, events, scripted_agent
from tests.services.sse_reader import read_events

CHAT = "/api/v1/agent/chat"
RESUME = "/api/v1/agent/chat/resume"
HI = {"user_id": "ann", "message": "hi"}
ODD_TEXTS = [
    "line\nline\r\n",
    "\u2028\u2029\x85",
    "data: x\n\nevent: done\n\n",
    "渐🌍👩‍🚀",
    "\\u0000",
    "",
]


async def until(raw: AsyncIterator[bytes], what: bytes) -> bytes:
    """Read on until something has come."""
    seen = b""
    async with asyncio.timeout(PATIENCE):
        async for chunk in raw:
            seen += chunk
            if what in seen:
                return seen
    raise AssertionError(seen)


async def test_a_turn_is_streamed_event_by_event(gateway: RunningGateway) -> None:
    gateway.agent.script = [*events("He", "llo"), done(4)]
    answer = await gateway.client.post(CHAT, json=HI)
    found = read_events(answer.content)
    assert [event.event for event in found] == ["started", "delta", "delta", "done"]
    assert [event.id for event in found] == ["c1/t1/1", "c1/t1/2", "c1/t1/3", "c1/t1/4"]
    assert [event.json["seq"] for event in found] == [1, 2, 3, 4]
    assert found[1].json["delta"] == {"text": "He"}
    assert found[3].json["done"] == {"finish_reason": "stop", "incomplete": False}
    assert (gateway.agent.request.user_id, gateway.agent.request.message) == ("ann", "hi")


async def test_headers_keep_proxies_from_holding_events_back(gateway: RunningGateway) -> None:
    gateway.agent.script = [*events(conversation_id="a/b 安"), done(2)]
    answer = await gateway.client.post(CHAT, json=HI, headers={"Accept-Encoding": "gzip, br"})
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in answer.headers
    assert answer.headers["x-conversation-id"] == "a%2Fb%20%E5%AE%89"
    assert read_events(answer.content)[0].id == "a%2Fb%20%E5%AE%89/t1/1"


async def test_any_text_survives_in_both_directions(gateway: RunningGateway) -> None:
    gateway.agent.script = [*events(*ODD_TEXTS), done(8)]
    for text in ODD_TEXTS:
        found = await gateway.chat({"user_id": "ann", "message": text})
        assert gateway.agent.request.message == text
        assert [event.json["delta"]["text"] for event in found[1:-1]] == ODD_TEXTS


async def test_lone_surrogates_reach_the_agent_as_replacement_characters(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [*events(), done(2)]
    body = rb'{"user_id": "ann", "message": "\ud83d"}'
    answer = await gateway.client.post(CHAT, content=body)
    assert answer.status_code == 200
    assert gateway.agent.request.message == "\ufffd"


async def test_a_client_message_id_is_made_if_absent_and_kept_if_given(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [*events(), done(2)]
    await gateway.chat()
    await gateway.chat()
    await gateway.chat({"message": "hi", "client_message_id": "m1"})
    first, second, third = (request.client_message_id for _, request in gateway.agent.asked)
    assert len({first, second, third}) == 3
    assert third == "m1"


async def test_events_come_while_the_turn_runs(gateway: RunningGateway) -> None:
    more = asyncio.Event()
    gateway.agent.script = [*events("first"), more, done(3)]
    async with gateway.client.stream("POST", CHAT, json=HI) as answer:
        raw = answer.aiter_raw()
        await until(raw, b"first")
        assert gateway.agent.sent == 2
        more.set()
        await until(raw, b"event: done")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, 400),
        (grpc.StatusCode.FAILED_PRECONDITION, 400),
        (grpc.StatusCode.NOT_FOUND, 404),
        (grpc.StatusCode.ABORTED, 409),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 429),
        (grpc.StatusCode.INTERNAL, 500),
        (grpc.StatusCode.UNIMPLEMENTED, 501),
        (grpc.StatusCode.UNAVAILABLE, 503),
    ],
)
async def test_a_failure_before_the_first_event_keeps_its_status(
    gateway: RunningGateway, code: grpc.StatusCode, status: int
) -> None:
    violation = Violation("message", "at most 32768 bytes")
    gateway.agent.script = [
        Failure(code, "SOME_REASON", "为什么", violations=(violation,), retry_after=1.5)
    ]
    answer = await gateway.client.post(CHAT, json=HI, headers={"X-Request-ID": "r-1"})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["retry-after"] == "2"
    assert answer.json() == {
        "error": {
            "code": code.name,
            "reason": "SOME_REASON",
            "message": "为什么",
            "violations": [{"field": "message", "description": "at most 32768 bytes"}],
            "request_id": "r-1",
        }
    }


async def test_an_agent_that_does_not_begin_in_time_is_504_and_cancelled(run: Any) -> None:
    agent = scripted_agent()
    agent.script = [60.0]
    async with run(agent=agent, first_event_timeout=0.5) as gateway:
        answer = await gateway.client.post(CHAT, json=HI)
        assert (answer.status_code, answer.json()["error"]["reason"]) == (504, "NO_FIRST_EVENT")
        await asyncio.wait_for(agent.cancelled.wait(), PATIENCE)


async def test_an_agent_that_ends_before_it_begins_is_500(gateway: RunningGateway) -> None:
    answer = await gateway.client.post(CHAT, json=HI)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (500, "STREAM_ENDED")


async def test_a_failure_inside_a_turn_is_one_error_event_and_no_done(
    gateway: RunningGateway,
) -> None:
    failure = Failure(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", "cannot be stored now")
    gateway.agent.script = [*events("He", "llo"), failure]
    found = await gateway.chat()
    assert [event.event for event in found] == ["started", "delta", "delta", "error"]
    error = {"reason": "STORE_UNAVAILABLE", "message": "cannot be stored now"}
    assert found[-1].json == {"seq": 0, "error": error}
    assert found[-1].id == "c1/t1/3"  # the place to resume after is still the last real event


async def test_an_unknown_failure_inside_a_turn_says_nothing_internal(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [*events("He"), RuntimeError("password=hunter2 at 10.0.0.7")]
    found = await gateway.chat()
    assert found[-1].event == "error"
    assert "hunter2" not in found[-1].data
    assert "10.0.0.7" not in found[-1].data


async def test_a_turn_that_just_stops_is_an_error_event(gateway: RunningGateway) -> None:
    gateway.agent.script = [*events("He")]
    found = await gateway.chat()
    assert found[-1].json["error"]["reason"] == "STREAM_ENDED"


async def test_what_happens_after_the_last_event_is_no_second_last_event(
    gateway: RunningGateway,
) -> None:
    failed = pb.ChatEvent(seq=3, error=pb.ChatError(reason="MODEL_REFUSED", message="no"))
    late = Failure(grpc.StatusCode.INTERNAL, "LATE", "too late")
    gateway.agent.script = [*events("He"), failed, late]
    found = await gateway.chat()
    assert [event.event for event in found] == ["started", "delta", "error"]
    assert found[-1].json["error"]["reason"] == "MODEL_REFUSED"
    assert found[-1].id == "c1/t1/3"


async def test_kinds_of_events_that_this_version_does_not_know_are_passed_on(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [*events(), pb.ChatEvent(seq=2), done(3)]
    assert [event.event for event in await gateway.chat()] == ["started", "unknown", "done"]


async def test_a_client_that_leaves_inside_a_turn_cancels_it_at_once(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [*events("a", "b", "c"), 60.0]
    async with gateway.client.stream("POST", CHAT, json=HI) as answer:
        await until(answer.aiter_raw(), b'"c"')
    await asyncio.wait_for(gateway.agent.cancelled.wait(), 1.0)


async def test_a_client_that_leaves_before_the_first_event_cancels_the_turn(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [60.0]
    with pytest.raises(httpx.ReadTimeout):
        await gateway.client.post(CHAT, json=HI, timeout=httpx.Timeout(PATIENCE, read=0.3))
    await asyncio.wait_for(gateway.agent.cancelled.wait(), 1.0)


async def test_a_silent_turn_is_kept_alive_by_comments(run: Any) -> None:
    agent = scripted_agent()
    more = asyncio.Event()
    agent.script = [*events(), more, done(2)]
    async with (
        run(agent=agent, heartbeat=0.02) as gateway,
        gateway.client.stream("POST", CHAT, json=HI) as answer,
    ):
        raw = answer.aiter_raw()
        seen = await until(raw, b": \n\n: \n\n")
        more.set()
        seen += await until(raw, b"event: done")
    assert [event.event for event in read_events(seen + b"\n\n")][:1] == ["started"]


async def test_a_slow_reader_slows_the_turn_and_loses_nothing(gateway: RunningGateway) -> None:
    count, text = 1500, "x" * 32_768
    gateway.agent.script = [*events(*[text] * count), done(count + 2)]
    async with gateway.client.stream("POST", CHAT, json=HI) as answer:
        raw = answer.aiter_raw()
        received = len(await anext(raw))
        sent = -1
        while sent != gateway.agent.sent:
            sent = gateway.agent.sent
            await asyncio.sleep(0.5)
        assert sent < count
        received += sum([len(chunk) async for chunk in raw])
    assert gateway.agent.sent == count + 2
    assert received > count * len(text)


async def test_a_turn_is_resumed_where_last_event_id_says(gateway: RunningGateway) -> None:
    gateway.agent.script = [pb.ChatEvent(seq=8, delta=pb.TextDelta(text="more")), done(9)]
    answer = await gateway.client.get(
        RESUME, params={"user_id": "ann"}, headers={"Last-Event-ID": "a%2Fb/t1/7"}
    )
    found = read_events(answer.content)
    assert [event.id for event in found] == ["a%2Fb/t1/8", "a%2Fb/t1/9"]
    assert answer.headers["x-conversation-id"] == "a%2Fb"
    assert gateway.agent.request == pb.ResumeChatRequest(
        user_id="ann", conversation_id="a/b", turn_id="t1", after_seq=7
    )


async def test_a_place_may_stand_in_the_query_and_the_header_goes_before_it(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [done(3)]
    fields = {"conversation_id": "c1", "turn_id": "t1", "after_seq": "2"}
    for query, headers, after in (
        (fields, {}, 2),
        ({"last_event_id": "c1/t1/5"}, {}, 5),
        ({"last_event_id": "c1/t1/5"}, {"Last-Event-ID": "c1/t1/6"}, 6),
        (fields, {"Last-Event-ID": "c1/t1/9"}, 9),
    ):
        answer = await gateway.client.get(RESUME, params=query, headers=headers)
        assert answer.status_code == 200
        assert gateway.agent.request.after_seq == after


async def test_a_place_that_is_none_or_another_turns_is_refused(gateway: RunningGateway) -> None:
    for query, headers, field in (
        ({}, {"Last-Event-ID": "nonsense"}, "Last-Event-ID"),
        ({"last_event_id": "c/t"}, {}, "last_event_id"),
        ({"turn_id": "t2"}, {"Last-Event-ID": "c1/t1/9"}, "turn_id"),
    ):
        answer = await gateway.client.get(RESUME, params=query, headers=headers)
        assert answer.status_code == 400
        assert [v["field"] for v in answer.json()["error"]["violations"]] == [field]


async def test_a_turn_with_nothing_left_tells_the_browser_to_stop(
    gateway: RunningGateway,
) -> None:
    answer = await gateway.client.get(RESUME, headers={"Last-Event-ID": "c1/t1/9"})
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_turn_that_cannot_be_resumed_keeps_its_status(gateway: RunningGateway) -> None:
    gateway.agent.script = [Failure(grpc.StatusCode.NOT_FOUND, "TURN_NOT_FOUND", "no such turn")]
    answer = await gateway.client.get(RESUME, headers={"Last-Event-ID": "c1/t1/9"})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "TURN_NOT_FOUND")


async def test_a_running_turn_ends_with_an_error_event_when_the_gateway_stops(
    gateway: RunningGateway,
) -> None:
    gateway.agent.script = [*events("a"), 60.0]
    async with gateway.client.stream("POST", CHAT, json=HI) as answer:
        raw = answer.aiter_raw()
        seen = await until(raw, b'"a"')
        gateway.signals.first.set()
        seen += b"".join([chunk async for chunk in raw])
    await gateway.serving
    found = read_events(seen)
    assert (found[-1].event, found[-1].json["error"]["reason"]) == ("error", "SHUTTING_DOWN")


async def test_a_turn_that_ends_within_the_grace_is_finished(run: Any) -> None:
    agent = scripted_agent()
    more = asyncio.Event()
    agent.script = [*events("a"), more, done(3)]
    async with (
        run(agent=agent, shutdown_grace=PATIENCE) as gateway,
        gateway.client.stream("POST", CHAT, json=HI) as answer,
    ):
        raw = answer.aiter_raw()
        await until(raw, b'"a"')
        gateway.signals.first.set()
        more.set()
        await until(raw, b"event: done")


async def test_a_second_signal_ends_turns_at_once(run: Any) -> None:
    agent = scripted_agent()
    agent.script = [*events("a"), 60.0]
    async with (
        run(agent=agent, shutdown_grace=60.0) as gateway,
        gateway.client.stream("POST", CHAT, json=HI) as answer,
    ):
        raw = answer.aiter_raw()
        await until(raw, b'"a"')
        gateway.signals.first.set()
        gateway.signals.second.set()
        await until(raw, b"SHUTTING_DOWN")
