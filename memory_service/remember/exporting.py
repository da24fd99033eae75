"""Giving out all of a user's memories."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO

from memory_service.domain.model import Memory
from memory_service.ports import MemorySnapshot

_IN_MEMORY = 1024 * 1024
"""Bytes; a larger export waits for its reader in a temporary file."""
_AT_ONCE = 256 * 1024
_LENGTH = 4


class Export:
    """Copies a snapshot to a temporary file first, so that a slow reader holds up no database."""

    def __init__(self, snapshot: MemorySnapshot) -> None:
        self._snapshot = snapshot

    async def each(
        self, user_id: str, encode: Callable[[Memory], bytes]
    ) -> AsyncGenerator[bytes, None]:
        """Give the user's memories in every status, encoded, as of one moment, oldest first.

        Raises StoreUnavailable, before the first one is given.
        """
        spool = await self._snapshot.copy(user_id, partial(_spooled, encode=encode))
        try:
            while some := await asyncio.to_thread(_next, spool):
                for each in some:
                    yield each
        finally:
            spool.close()


def _spooled(memories: Iterable[Memory], encode: Callable[[Memory], bytes]) -> IO[bytes]:
    spool: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 — each closes it
    try:
        for memory in memories:
            encoded = encode(memory)
            spool.write(len(encoded).to_bytes(_LENGTH) + encoded)
        spool.seek(0)
    except BaseException:
        spool.close()
        raise
    return spool


def _next(spool: IO[bytes]) -> list[bytes]:
    """Read some more; nothing at the end."""
    some: list[bytes] = []
    read = 0
    while read < _AT_ONCE and (length := spool.read(_LENGTH)):
        some.append(spool.read(int.from_bytes(length)))
        read += len(some[-1])
    return some
