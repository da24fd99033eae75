"""Time and ids that a test rules."""

from datetime import UTC, datetime, timedelta
from itertools import count

START = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


class FakeClock:
    """A Clock that stands until it is moved."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, step: timedelta | float) -> None:
        """Move on; a number is seconds."""
        self.now += step if isinstance(step, timedelta) else timedelta(seconds=step)


class FakeIds:
    """A NewId that counts: id000001, id000002, …"""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"id{next(self._numbers):06}"
