"""What every Model promises: the fake one, the stand-in, and the client of a real endpoint."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from agent_service.adapters.model_offline import OfflineModel
from agent_service.adapters.model_openai import ModelEndpoint, OpenAIModel
from agent_service.domain.model import Message, Role
from agent_service.domain.tokens import FunctionCounter
from agent_service.ports import Model, ModelEvent, ModelFinish, ModelOptions, ModelText, ModelUsage
from tests.fakes.model import FakeModel, says
from tests.services import openai_server

HELLO = [Message(Role.SYSTEM, "Be kind."), Message(Role.USER, "Hello 🌍")]


@asynccontextmanager
async def opened(kind: str) -> AsyncIterator[Model]:
    match kind:
        case "fake":
            yield FakeModel(says("He", "llo", "!"))
        case "offline":
            yield OfflineModel(FunctionCounter(len))
        case _:
            with openai_server.openai_server(openai_server.says("He", "llo", "!")) as server:
                model = OpenAIModel(ModelEndpoint(base_url=server.base_url, model="m"))
                yield model
                await model.close()


@pytest.fixture(params=["fake", "offline", "openai"])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[Model]:
    async with opened(request.param) as one:
        yield one


async def heard(model: Model) -> list[ModelEvent]:
    async with aclosing(model.stream(HELLO, ModelOptions())) as events:
        return [event async for event in events]


async def test_an_answer_is_texts_then_usage_then_one_finish(model: Model) -> None:
    *texts, usage, finish = await heard(model)
    assert len(texts) > 1
    assert all(isinstance(one, ModelText) and one.text for one in texts)
    assert isinstance(usage, ModelUsage)
    assert usage.prompt_tokens > 0
    assert finish == ModelFinish("stop")


async def test_the_same_messages_may_be_sent_again(model: Model) -> None:
    assert await heard(model) == await heard(model)


async def test_several_answers_may_run_at_a_time(model: Model) -> None:
    first, *others = await asyncio.gather(*(heard(model) for _ in range(3)))
    assert all(other == first for other in others)


async def test_an_answer_may_be_closed_at_any_event(model: Model) -> None:
    whole = await heard(model)
    for count in range(len(whole)):
        events = model.stream(HELLO, ModelOptions())
        given = [await anext(events) for _ in range(count)]
        await events.aclose()
        assert given == whole[:count]
    assert await heard(model) == whole
