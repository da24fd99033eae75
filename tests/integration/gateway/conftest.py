from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from tests.services.running_gateway import RunningGateway, running_gateway

Run = Callable[..., AbstractAsyncContextManager[RunningGateway]]


@pytest.fixture
def run() -> Run:
    """Start a gateway with settings of the test's own."""
    return running_gateway


@pytest.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    async with running_gateway() as running:
        yield running
