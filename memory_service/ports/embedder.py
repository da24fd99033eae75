"""The embedder."""

from collections.abc import Sequence
from typing import Protocol

from memory_service.ports.types import Vector


class Embedder(Protocol):
    """Turns texts into unit vectors. Raises EmbedderUnavailable when it does not answer."""

    @property
    def fingerprint(self) -> str:
        """Model, version and dims, as [a-z0-9_]{1,64}; names collection and stored vectors."""
        ...

    @property
    def dims(self) -> int:
        """Length of a vector."""
        ...

    @property
    def lexical(self) -> bool:
        """Tell whether it only compares spelling, so that paraphrases are not found."""
        ...

    @property
    def likeness_floor(self) -> float:
        """Raw cosine below which two statements are about different things, in -1..1.

        Two of the same matter hardly ever lie below; above lie many that only seem alike.
        """
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix for questions."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix for memories."""
        ...
