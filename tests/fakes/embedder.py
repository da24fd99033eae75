"""An embedder in memory: vectors from a table, else from a hash of the text."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from memory_service.domain.errors import EmbedderUnavailable
from memory_service.ports import Vector


class FakeEmbedder:
    """down: the cause of a refusal, "" while it works; hang: never answers.

    A text of the table gets its vector as it stands there, even one that is no unit vector; any
    other text gets a unit vector of its own, almost at right angles to the others.
    """

    def __init__(
        self,
        table: Mapping[str, Sequence[float]] | None = None,
        *,
        dims: int = 64,
        lexical: bool = False,
    ) -> None:
        self.table: dict[str, Sequence[float]] = dict(table or {})
        self.queries: list[str] = []
        self.documents: list[str] = []
        self.down = ""
        self.hang = False
        self.fingerprint = f"fake_{dims}"
        self.dims = dims
        self.lexical = lexical
        self.likeness_floor = 0.35

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        self.queries += texts
        return await self._embed(texts)

    async def embed_documents(self, texts: Sequence[str]) -> Vector:
        self.documents += texts
        return await self._embed(texts)

    def vector(self, text: str) -> Vector:
        """Give the vector of a text."""
        if text in self.table:
            return np.array(self.table[text], np.float32)
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
        drawn = np.random.default_rng(seed).standard_normal(self.dims)
        return (drawn / np.linalg.norm(drawn)).astype(np.float32)

    async def _embed(self, texts: Sequence[str]) -> Vector:
        await asyncio.sleep(0)
        if self.hang:
            await asyncio.Event().wait()
        if self.down:
            raise EmbedderUnavailable(self.down)
        return np.array([self.vector(text) for text in texts], np.float32).reshape(-1, self.dims)
