"""Embeddings of what is about to be stored."""

import asyncio
from collections.abc import Sequence

import numpy as np

from memory_service.domain.errors import EmbedderUnavailable
from memory_service.domain.model import Memory
from memory_service.domain.text import indexed_text
from memory_service.ports import Embedder, Vector


class Embedding:
    """Embeds memories, in at most timeout seconds a call."""

    def __init__(self, embedder: Embedder, *, timeout: float) -> None:
        self._embedder = embedder
        self._timeout = timeout

    @property
    def fingerprint(self) -> str:
        """Whose embeddings these are."""
        return self._embedder.fingerprint

    async def vectors(self, memories: Sequence[Memory]) -> Sequence[Vector | None]:
        """Give an embedding of each.

        None where none is needed, where none comes in time, or where it points nowhere.
        """
        texts = [indexed_text(memory) for memory in memories if not memory.supports_only]
        made = iter(await self._made(texts))
        return [None if memory.supports_only else next(made) for memory in memories]

    async def _made(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        if not texts:
            return []
        try:
            async with asyncio.timeout(self._timeout):
                vectors = await self._embedder.embed_documents(texts)
        except (EmbedderUnavailable, TimeoutError):
            return [None] * len(texts)
        return [
            vector if np.isfinite(vector).all() and vector.any() else None for vector in vectors
        ]
