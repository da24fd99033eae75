"""An agent service with a scripted model and a scripted memory, on SQLite or on each database."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_service.settings import AgentSettings
from tests.services.openai_server import OpenAIServer, openai_server
from tests.services.running_agent import AgentServer, ServeAgent, recalled, running_agent
from tests.services.scripted_agent import Scripted, scripted_memory, serving_scripted


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


@pytest.fixture
async def memory() -> AsyncIterator[tuple[Scripted, str]]:
    """A memory service that holds nothing until a test says so, and its address."""
    scripted = scripted_memory()
    scripted.answers["Retrieve"] = recalled()
    async with serving_scripted(scripted) as server:
        yield scripted, server.address


@pytest.fixture
def serve_agent(tmp_path: Path, model: OpenAIServer, memory: tuple[Scripted, str]) -> ServeAgent:
    """Give a way to serve with chosen settings; the same folder each time."""

    def serve(*, clock: Any = None, **knobs: Any) -> Any:
        scripted, memory_target = memory
        chosen: dict[str, Any] = {
            "data_dir": tmp_path,
            "listen": "127.0.0.1:0",
            "llm_base_url": model.base_url,
            "llm_model": "scripted",
            "memory_target": memory_target,
            "system_prompt": "Be kind.",
            # A busy machine must not make an answer degraded, or a second turn give up.
            "recall_timeout": 20,
            "busy_wait": 60,
            "lease": 60,
        }
        settings = AgentSettings(**chosen | knobs)
        return running_agent(settings, model, scripted, **({"clock": clock} if clock else {}))

    return serve


@pytest.fixture(params=["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def database_knobs(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Give the settings of each database in turn."""
    if request.param == "sqlite":
        return {}
    return {"database_url": request.getfixturevalue("mariadb_server").url()}


@pytest.fixture
async def agent(serve_agent: ServeAgent) -> AsyncIterator[AgentServer]:
    """Serve with the defaults on SQLite."""
    async with serve_agent() as running:
        yield running


@pytest.fixture
async def any_agent(
    serve_agent: ServeAgent, database_knobs: dict[str, Any]
) -> AsyncIterator[AgentServer]:
    """Serve with the defaults on each database."""
    async with serve_agent(**database_knobs) as running:
        yield running
