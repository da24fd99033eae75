"""What all sweeps share: how far they are, and how often they run."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from memory_service.domain.duplicates import Duplicate
from memory_service.domain.errors import IndexUnavailable, StoreUnavailable
from memory_service.ports import MemoryRef

FIRST_WAIT = 60.0
"""Most seconds before a sweep runs for the first time."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How much a sweep has done since it began, by what it counts; found: what was seen last."""

    counts: Mapping[str, int]
    user_id: str = ""
    found: tuple[Duplicate, ...] = field(default=())


Sweep = Callable[[], AsyncIterator[Progress]]


async def rounds(
    name: str,
    sweep: Sweep,
    *,
    every: float,
    on_end: Callable[[Mapping[str, int]], object] = lambda _counts: None,
) -> None:
    """Run a sweep every so many seconds; endless. One that meets an outage is left to the next.

    on_end hears what each whole round did.
    """
    await asyncio.sleep(min(every, FIRST_WAIT))
    while True:
        counts: Mapping[str, int] = {}
        try:
            async for progress in sweep():
                counts = progress.counts
        except (StoreUnavailable, IndexUnavailable) as away:
            _log.warning("sweep_broke_off", sweep=name, cause=type(away).__name__, **counts)
        else:
            on_end(counts)
            _log.info("sweep_ended", sweep=name, **counts)
        await asyncio.sleep(every)


def by_user(refs: Iterable[MemoryRef]) -> Mapping[str, list[str]]:
    """Give memory_ids by user."""
    grouped: defaultdict[str, list[str]] = defaultdict(list)
    for ref in refs:
        grouped[ref.user_id].append(ref.memory_id)
    return grouped
