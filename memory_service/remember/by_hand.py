"""Writing one thing by hand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from memory_service.domain.errors import MemoryNotInUse, StaleVersion
from memory_service.domain.model import Memory, MemoryStatus, UserState
from memory_service.domain.text import indexed_text
from memory_service.domain.write import MemoryPatch, NewMemory, Stored, deleted, patched, restored
from memory_service.ports import (
    Clock,
    MemoryReader,
    MemoryWriter,
    NewId,
    RequestKey,
    Transaction,
    Vector,
)
from memory_service.remember.embedding import Embedding
from memory_service.remember.steps import found, replace_by, store

IN_USE = frozenset({MemoryStatus.ACTIVE, MemoryStatus.ARCHIVED})
"""What may be changed by hand; the other statuses are left by RestoreMemory alone."""


class Remember:
    """Stores and changes memories and settings, one at a time; encode makes the answer to keep."""

    def __init__(
        self,
        reader: MemoryReader,
        writer: MemoryWriter,
        embedding: Embedding,
        *,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._embedding = embedding
        self._clock = clock
        self._new_id = new_id

    async def create(
        self, new: NewMemory, key: RequestKey, encode: Callable[[Stored], bytes]
    ) -> bytes:
        """Store a memory, or refresh the equal one. Raises MemoryNotAllowed."""
        memory = new.memory(self._new_id(), self._clock())
        (vector,) = await self._embedding.vectors([memory])

        def work(tx: Transaction) -> bytes:
            return encode(store(tx, memory, vector, self._embedding.fingerprint))

        return await self._writer.once(new.user_id, key, work)

    async def update(
        self, user_id: str, patch: MemoryPatch, key: RequestKey, encode: Callable[[Memory], bytes]
    ) -> bytes:
        """Change the values of the patch and no others.

        Raises MemoryNotFound, StaleVersion, MemoryNotInUse if it is deleted or superseded, and
        EqualMemoryExists if another active memory says the same.
        """
        now = self._clock()
        text, vector = await self._embed(user_id, patch)

        def work(tx: Transaction) -> bytes:
            before = found(tx, patch.memory_id)
            if before.version != patch.version:
                message = f"the memory is at version {before.version}, not {patch.version}"
                raise StaleVersion(message)
            if before.status not in IN_USE:
                raise MemoryNotInUse
            after = patched(before, patch.values, now)
            fitting = vector if indexed_text(after) == text else None
            return encode(replace_by(tx, before, after, fitting, self._embedding.fingerprint))

        return await self._writer.once(user_id, key, work)

    async def delete(
        self, user_id: str, memory_id: str, key: RequestKey, encode: Callable[[Memory], bytes]
    ) -> bytes:
        """Mark a memory deleted; a deleted one stays as it is. Raises MemoryNotFound."""
        return await self._bring(deleted, user_id, memory_id, key, encode)

    async def restore(
        self, user_id: str, memory_id: str, key: RequestKey, encode: Callable[[Memory], bytes]
    ) -> bytes:
        """Make a memory active and clear an expire_time that is past; else an active one stays.

        Raises MemoryNotFound, and EqualMemoryExists if another active memory says the same.
        """
        return await self._bring(restored, user_id, memory_id, key, encode)

    async def set_settings(
        self,
        user_id: str,
        values: Mapping[str, Any],
        key: RequestKey,
        encode: Callable[[UserState], bytes],
    ) -> bytes:
        """Change these settings, by their names in UserSettings, and no others."""

        def work(tx: Transaction) -> bytes:
            return encode(tx.set_settings(replace(tx.state.settings, **values)))

        return await self._writer.once(user_id, key, work)

    async def _bring(
        self,
        to: Callable[[Memory, datetime], Memory],
        user_id: str,
        memory_id: str,
        key: RequestKey,
        encode: Callable[[Memory], bytes],
    ) -> bytes:
        now = self._clock()

        def work(tx: Transaction) -> bytes:
            before = found(tx, memory_id)
            after = to(before, now)
            if after is before:
                return encode(before)
            return encode(replace_by(tx, before, after, None, self._embedding.fingerprint))

        return await self._writer.once(user_id, key, work)

    async def _embed(self, user_id: str, patch: MemoryPatch) -> tuple[str, Vector | None]:
        """Embed what the memory will say, if that changes; the text tells what was embedded."""
        rows = await self._reader.load(user_id, [patch.memory_id])
        if not rows:
            return "", None
        before = rows[0].memory
        after = patched(before, patch.values, before.update_time)
        if indexed_text(after) == indexed_text(before):
            return "", None
        (vector,) = await self._embedding.vectors([after])
        return indexed_text(after), vector
