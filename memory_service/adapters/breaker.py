"""A circuit breaker: after some failures in a row nobody waits for a system that is away."""

import time
from collections.abc import Callable


class Breaker:
    """Closed until threshold failures in a row; then open, with one trial after each cool-down.

    The first cool-down lasts cool_down seconds; each failed trial doubles it, up to longest. A
    trial whose outcome is never told does not block the next one. For one event loop or thread.
    """

    def __init__(
        self,
        *,
        threshold: int = 3,
        cool_down: float = 1.0,
        longest: float = 15.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threshold = threshold
        self._first = cool_down
        self._longest = longest
        self._monotonic = monotonic
        self._failures = 0
        self._cool_down = cool_down
        self._trial_at: float | None = None
        self._trying = False

    @property
    def closed(self) -> bool:
        """Tell whether calls may go through as usual."""
        return self._trial_at is None

    def wait(self) -> float:
        """Give the seconds until a trial is allowed; 0 when closed."""
        return 0.0 if self._trial_at is None else max(0.0, self._trial_at - self._monotonic())

    def admit(self) -> bool:
        """Tell whether a call may go out now; while open this takes the one trial."""
        if self._trial_at is None:
            return True
        if self._monotonic() < self._trial_at:
            return False
        self._trying = True
        self._trial_at = self._monotonic() + self._cool_down
        return True

    def success(self) -> None:
        """Note an answer: closed, and all failures forgotten."""
        self._failures = 0
        self._cool_down = self._first
        self._trial_at = None
        self._trying = False

    def failure(self) -> None:
        """Note a call without an answer. Late failures of calls sent before do not prolong it."""
        self._failures += 1
        if self._trial_at is None:
            if self._failures >= self._threshold:
                self.trip()
        elif self._trying:
            self._cool_down = min(self._cool_down * 2, self._longest)
            self.trip()

    def trip(self) -> None:
        """Open now, for the cool-down reached so far."""
        self._trying = False
        self._trial_at = self._monotonic() + self._cool_down
