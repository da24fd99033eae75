"""How long a call may still take."""

from typing import Any

import grpc


def remaining(context: grpc.aio.ServicerContext[Any, Any], most: float) -> float:
    """Give the seconds left of the client's deadline, 0 if it is over, at most `most`."""
    # the stub says float; a client without a deadline gives None
    left: float | None = context.time_remaining()
    return most if left is None else min(most, max(0.0, left))
