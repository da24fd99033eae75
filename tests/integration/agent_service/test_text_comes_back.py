"""Text through gateway, agent and SQL, and from a model's JSON (A39, A40, A41, A42)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.services.openai_server import DONE, chunk, says, streams
from tests.services.running_agent import AgentServer, gateway_of
from tests.services.sse_reader import read_events

CHAT = "/api/v1/agent/chat"
MAX_MESSAGE_BYTES = 32 * 1024
ODD = (
    "🙂👩‍🚀 渐 {x} {{y}} %s $z \\u0041 \u2028\u2029\x85 \ufeff</script> "
    "'q' \"q\" ; -- \t\r\n \ue000 e\u0301"
)


@pytest.fixture
async def http(any_agent: AgentServer) -> AsyncIterator[httpx.AsyncClient]:
    async with gateway_of(any_agent) as client:
        yield client


async def chat(http: httpx.AsyncClient, raw_message: str, **fields: Any) -> dict[str, str]:
    """Send a message as it would stand in the JSON, and give question and answer as stored."""
    body = {"user_id": "ann", "conversation_id": "c1", **fields}
    raw = json.dumps(body)[:-1] + f', "message": {raw_message}}}'
    answer = await http.post(CHAT, content=raw.encode())
    assert answer.status_code == 200, answer.text
    deltas = [
        event.json["delta"] for event in read_events(answer.content) if event.event == "delta"
    ]
    asked = {"user_id": body["user_id"], "conversation_id": body["conversation_id"]}
    timeline = await http.get("/api/v1/agent/conversation-timeline", params=asked)
    assert timeline.status_code == 200, timeline.text
    said = {
        kind: event[kind]["text"]
        for event in timeline.json()["events"]
        for kind in ("user_text", "assistant_text")
        if kind in event
    }
    assert "".join(delta["text"] for delta in deltas) == said["assistant_text"]
    return said


async def test_a39_half_a_character_from_either_side_is_replaced_and_the_timeline_stays_readable(
    http: httpx.AsyncClient, any_agent: AgentServer
) -> None:
    half = chunk({"content": "?"}).replace(b'"?"', b'"bad \\ud83d end"')
    any_agent.model.scripts = [streams(half, chunk(finish="stop"), DONE)]
    said = await chat(http, r'"\ud83d"')
    assert said == {"user_text": "\ufffd", "assistant_text": "bad \ufffd end"}
    # The same words are what the next model call is given.
    await chat(http, '"Go on"')
    assert [message["content"] for message in any_agent.prompt[1:]] == [
        "\ufffd",
        "bad \ufffd end",
        "Go on",
    ]


async def test_a40_nul_is_taken_out_and_alone_it_is_nothing(
    http: httpx.AsyncClient, any_agent: AgentServer
) -> None:
    nul = chunk({"content": "?"}).replace(b'"?"', b'"c\\u0000d"')
    any_agent.model.scripts = [streams(nul, chunk(finish="stop"), DONE)]
    assert await chat(http, r'"a\u0000b"') == {"user_text": "ab", "assistant_text": "cd"}
    refused = await http.post(CHAT, json={"user_id": "ann", "message": "\0"})
    assert refused.status_code == 400
    (violation,) = refused.json()["error"]["violations"]
    assert violation["field"] == "message"


@pytest.mark.parametrize("character", ["x", "渐", "🙂"])
async def test_a41_a_message_is_stored_whole_or_refused_at_32_kib_and_an_answer_has_no_limit(
    http: httpx.AsyncClient, any_agent: AgentServer, character: str
) -> None:
    width = len(character.encode())
    longest = character * (MAX_MESSAGE_BYTES // width)
    answer = character * (70_000 // width)
    any_agent.model.scripts = [says(answer)]
    said = await chat(http, json.dumps(longest))
    assert said == {"user_text": longest, "assistant_text": answer}
    for too_long in (longest + character, character * 70_000):
        refused = await http.post(CHAT, json={"user_id": "ann", "message": too_long})
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "INVALID_ARGUMENT"


async def test_a42_emoji_and_odd_text_come_back_byte_for_byte_also_in_ids(
    http: httpx.AsyncClient, any_agent: AgentServer
) -> None:
    any_agent.model.scripts = [says(ODD[:9], ODD[9:])]
    ids = {"user_id": "ann🙂👩‍🚀", "conversation_id": "c '渐' 🌍 %_\\"}
    said = await chat(http, json.dumps(ODD), **ids)
    assert said == {"user_text": ODD, "assistant_text": ODD}
    assert any_agent.prompt[-1]["content"] == ODD
    meta = await http.get("/api/v1/agent/conversation-meta", params=ids)
    assert meta.json()["conversation"]["conversation_id"] == ids["conversation_id"]
    assert meta.json()["conversation"]["title"].startswith("🙂👩‍🚀 渐 {x} {{y}} %s")
