"""What a leg did, as the answer tells it."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from memory_service.domain.recall import Leg, LegState, Source


def source(
    leg: Leg,
    state: LegState,
    *,
    since: float,
    candidates: int = 0,
    reasons: Iterable[str] = (),
) -> Source:
    """Tell of a leg that began at a time of the event loop's clock and ends now."""
    return Source(
        leg=leg,
        state=state,
        reason=",".join(reasons),
        candidates=candidates,
        elapsed=timedelta(seconds=asyncio.get_running_loop().time() - since),
    )


def skipped(reason: str, *legs: Leg) -> list[Source]:
    """Tell of legs that were not asked."""
    return [Source(leg=leg, state=LegState.SKIPPED, reason=reason) for leg in legs]
