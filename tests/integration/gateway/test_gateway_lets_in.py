"""Who gets in, and as whom."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.keys import create_key, revoke_key
from tests.services.running_gateway import RunningGateway
from tests.services.scripted_agent import done, events

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MEMORY = "/api/v1/memory"
AGENT = "/api/v1/agent"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "api-keys.json"


def codes(*answers: Any) -> list[int]:
    return [answer.status_code for answer in answers]


async def test_the_key_decides_the_user_in_the_query_in_the_body_and_in_a_chat(
    run: Any, file: Path
) -> None:
    _, ann = create_key(file, "ann", "", NOW)
    async with run(api_keys_file=file) as gateway:
        get, client = gateway.client.get, gateway.client
        for asked in ({}, {"user_id": "ann"}):
            assert codes(
                await get(f"{MEMORY}/stats", params=asked, headers=bearer(ann)),
                await client.post(f"{MEMORY}/retrieve", json=asked, headers=bearer(ann)),
            ) == [200, 200]
            assert [request.user_id for _, request in gateway.memory.asked[-2:]] == ["ann", "ann"]
        gateway.agent.script = [*events(), done(2)]
        await client.post(f"{AGENT}/chat", json={"message": "hi"}, headers=bearer(ann))
        assert gateway.agent.request.user_id == "ann"


async def test_another_user_is_403_wherever_it_is_named(run: Any, file: Path) -> None:
    _, ann = create_key(file, "ann", "", NOW)
    async with run(api_keys_file=file) as gateway:
        client, headers = gateway.client, bearer(ann)
        answers = [
            await client.get(f"{MEMORY}/stats", params={"user_id": "bob"}, headers=headers),
            await client.post(f"{MEMORY}/retrieve", json={"userId": "bob"}, headers=headers),
            await client.post(
                f"{MEMORY}/items", json={"memory": {"user_id": "bob"}}, headers=headers
            ),
            await client.post(f"{AGENT}/chat", json={"user_id": "Ann"}, headers=headers),
        ]
        assert codes(*answers) == [403] * 4
        assert {answer.json()["error"]["reason"] for answer in answers} == {"ANOTHER_USER"}
        assert not gateway.memory.asked
        assert not gateway.agent.asked


async def test_metadata_may_say_user_id_as_it_likes(run: Any, file: Path) -> None:
    _, ann = create_key(file, "ann", "", NOW)
    async with run(api_keys_file=file) as gateway:
        body = {"memory": {"content": "c", "metadata": {"user_id": "bob", "n": [{"user_id": 1}]}}}
        answer = await gateway.client.post(f"{MEMORY}/items", json=body, headers=bearer(ann))
        assert answer.status_code == 200


async def test_without_a_valid_key_everything_but_health_and_docs_is_401(
    run: Any, file: Path
) -> None:
    async with run(api_keys_file=file) as gateway:  # the file does not exist yet
        client = gateway.client
        answers = [
            await client.get(f"{MEMORY}/stats", params={"user_id": "ann"}),
            await client.post(f"{AGENT}/chat", content=b"not even JSON"),
            await client.get(f"{MEMORY}/stats", headers=bearer("wrong")),
        ]
        assert codes(*answers) == [401] * 3
        assert answers[0].headers["www-authenticate"] == "Bearer"
        assert answers[0].json()["error"]["code"] == "UNAUTHENTICATED"
        paths = ("/healthz", "/docs", "/openapi.json")
        assert codes(*[await client.get(path) for path in paths]) == [200] * 3
        assert "security" in json.loads((await client.get("/openapi.json")).content)


async def test_keys_come_and_go_while_the_gateway_runs(run: Any, file: Path) -> None:
    async with run(api_keys_file=file) as gateway:
        key, secret = create_key(file, "ann", "", NOW)
        get = gateway.client.get
        assert (await get(f"{MEMORY}/stats", headers=bearer(secret))).status_code == 200
        revoke_key(file, key.key_id, NOW)
        assert (await get(f"{MEMORY}/stats", headers=bearer(secret))).status_code == 401
        await asyncio.to_thread(file.write_text, "{")
        assert (await get(f"{MEMORY}/stats", headers=bearer(secret))).status_code == 503


async def test_with_keys_other_addresses_may_be_listened_on(run: Any, file: Path) -> None:
    async with run(api_keys_file=file, listen="0.0.0.0:0") as gateway:
        host = {"Host": "chat.example"}
        assert (await gateway.client.get("/healthz", headers=host)).status_code == 200


async def test_without_authentication_other_sites_are_kept_out(gateway: RunningGateway) -> None:
    client = gateway.client
    foreign = await client.get(f"{MEMORY}/stats", headers={"Host": "evil.example"})
    posted = await client.post(
        f"{MEMORY}/items", content=b"{}", headers={"Origin": "https://evil.example"}
    )
    assert codes(foreign, posted) == [403, 403]
    own = await client.post(f"{MEMORY}/retrieve", json={}, headers={"Origin": gateway.url})
    assert own.status_code == 200
