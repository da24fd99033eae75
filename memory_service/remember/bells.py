"""Telling those who wait in this process that a user's memories or settings changed."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Bells:
    """A bell for each user whom somebody waits for; what other processes write rings none."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    @property
    def is_awaited(self) -> bool:
        """Tell whether somebody waits."""
        return bool(self._waiting)

    @contextmanager
    def listening(self, user_id: str) -> Iterator[asyncio.Event]:
        """Give an event that is set at each change, inside."""
        bell = asyncio.Event()
        waiting = self._waiting.setdefault(user_id, set())
        waiting.add(bell)
        try:
            yield bell
        finally:
            waiting.discard(bell)
            if not waiting:
                self._waiting.pop(user_id, None)

    def ring(self, user_id: str) -> None:
        """Wake those who wait for the user."""
        for bell in self._waiting.get(user_id, ()):
            bell.set()

    def ring_all(self) -> None:
        """Wake everybody."""
        for user_id in self._waiting:
            self.ring(user_id)
