"""How long to leave alone what does not answer."""

import math
import random
from collections.abc import Callable

from memory_service.ports.jobs import LONGEST_PAUSE


def pause(failures: int) -> float:
    """Give seconds to wait after that many failures in a row: 1 doubling to 60, with jitter.

    Between half and all of that, so that those who failed together do not come back together.
    """
    doubled: float = 2.0 ** min(failures - 1, 10)
    return min(doubled, LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311 — jitter


class Outages:
    """What one worker knows of an outage: for how long to try nothing, and whether it is over.

    Times are those of monotonic. Failures of work that began before an outage was seen are the same
    outage; a success of such work is not its end.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failures = 0
        self._seen = -math.inf
        self._until = -math.inf

    @property
    def known(self) -> bool:
        """Whether there is one as far as is known: nothing has worked since."""
        return self._failures > 0

    @property
    def rest(self) -> bool:
        """Whether nothing is to be tried now."""
        return self.known and self._monotonic() < self._until

    def failed(self, begun: float) -> None:
        """Note that work which began then met something that is away."""
        if self.known and begun <= self._seen:
            return
        self._failures += 1
        self._seen = self._monotonic()
        self._until = self._seen + pause(self._failures)

    def worked(self, begun: float) -> None:
        """Note that work which began then met nothing of the kind."""
        if begun > self._seen:
            self._failures = 0
