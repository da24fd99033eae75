from typing import Any

import grpc
import pytest

from rpc.drain import Drain
from rpc.errors import Failure


async def test_a_call_that_comes_after_the_end_is_refused() -> None:
    drain = Drain()
    call: Any = None

    async def proceed() -> str:
        return "answered"

    assert await drain.intercept(call, proceed) == "answered"
    drain.close()
    with pytest.raises(Failure) as raised:
        await drain.intercept(call, proceed)
    assert (raised.value.code, raised.value.reason) == (
        grpc.StatusCode.UNAVAILABLE,
        "SHUTTING_DOWN",
    )
