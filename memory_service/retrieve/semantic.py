"""The semantic leg: a query's vector, and what the index finds near it. Failures are answers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from memory_service.domain.bank import BANK
from memory_service.domain.centre import unit
from memory_service.domain.cut import Ruler, make_ruler
from memory_service.domain.errors import EmbedderUnavailable, IndexUnavailable
from memory_service.domain.gate import Gate
from memory_service.domain.model import MemoryType
from memory_service.domain.text import indexed_text
from memory_service.ports import Embedder, IndexFilter, StoredRow, Vector, VectorIndex
from memory_service.retrieve.settings import RetrieveSettings

TIMEOUT = "timeout"
NO_VECTOR = "no_vector"
"""The embedder gave a vector without a direction: zero, or not finite."""
QUERY_CUT = "query_cut"
LEXICAL = "lexical"

_KNOWN_TYPES = frozenset(MemoryType) - {MemoryType.UNKNOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A query's unit vector, or why there is none; notes tell what it does not cover, or would."""

    vector: Vector | None = None
    failure: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """Raw cosines by memory_id as the index gave them, or why it did not."""

    cosines: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""


class SemanticLeg:
    """Asks embedder and index; index None: there is none, see exact."""

    def __init__(
        self, embedder: Embedder, index: VectorIndex | None, settings: RetrieveSettings
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._settings = settings
        self._measuring: asyncio.Task[Ruler] | None = None

    @property
    def exact(self) -> bool:
        """Tell whether cosines come from the embeddings in SQL."""
        return self._settings.exact or self._index is None

    @property
    def fingerprint(self) -> str:
        """Name the stored embeddings that fit the embedder."""
        return self._embedder.fingerprint

    async def embed(self, text: str, *, until: float) -> Embedded:
        """Embed the beginning of a query."""
        beginning = text.encode()[: self._settings.query_bytes].decode(errors="ignore")
        notes: tuple[str, ...] = (QUERY_CUT,) if len(beginning) < len(text) else ()
        notes += (LEXICAL,) if self._embedder.lexical else ()
        try:
            async with asyncio.timeout_at(until):
                vectors = await self._embedder.embed_queries([beginning])
        except EmbedderUnavailable as error:
            return Embedded(failure=error.cause, notes=notes)
        except TimeoutError:
            return Embedded(failure=TIMEOUT, notes=notes)
        vector = _direction(vectors[0])
        if vector is None:
            return Embedded(failure=NO_VECTOR, notes=notes)
        return Embedded(vector=vector, notes=notes)

    async def with_vectors(self, rows: Sequence[StoredRow], *, until: float) -> Sequence[StoredRow]:
        """Give the rows that have an embedding, after embedding some of those that have none."""
        stored = [row for row in rows if row.vector is not None]
        bare = [row.memory for row in rows if row.vector is None][: self._settings.embed_limit]
        if not bare:
            return stored
        try:
            async with asyncio.timeout_at(until):
                made = await self._embedder.embed_documents([indexed_text(row) for row in bare])
        except (EmbedderUnavailable, TimeoutError):
            return stored
        return [*stored, *map(StoredRow, bare, made)]

    async def nearest(self, vector: Vector, gate: Gate, *, until: float) -> Nearest:
        """Ask the index."""
        wanted = index_filter(gate)
        if self._index is None or wanted is None:
            return Nearest()
        try:
            async with asyncio.timeout_at(until):
                hits = await self._index.search(vector, wanted, limit=self._settings.index_limit)
        except IndexUnavailable as error:
            return Nearest(failure=error.cause)
        except TimeoutError:
            return Nearest(failure=TIMEOUT)
        found = {hit.memory_id: hit.cosine for hit in hits if np.isfinite(hit.cosine)}
        return Nearest(cosines={one: min(1.0, max(-1.0, cos)) for one, cos in found.items()})

    async def ruler(self, *, until: float) -> Ruler | None:
        """Give the embedder's own ruler, measured once; None while it is not known."""
        if self._measuring is None:
            self._measuring = asyncio.create_task(self._measure())
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.shield(self._measuring)
        except TimeoutError:
            return None
        except EmbedderUnavailable:
            self._measuring = None
            return None

    async def _measure(self) -> Ruler:
        return make_ruler(await self._embedder.embed_queries(list(BANK)))

    async def close(self) -> None:
        """Stop measuring."""
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.gather(self._measuring, return_exceptions=True)


def index_filter(gate: Gate) -> IndexFilter | None:
    """Give the gates that the index has columns for; None: they leave no type at all."""
    types = (gate.memory_types or _KNOWN_TYPES) - gate.settings.disabled_types
    if not types:
        return None
    return IndexFilter(
        user_id=gate.scope.user_id,
        now=gate.now,
        assistant_id=gate.scope.assistant_id,
        run_id=gate.scope.run_id,
        explicit_only=not gate.settings.implicit_memory_enabled,
        max_sensitivity=2 if gate.settings.sensitive_memory_enabled else 0,
        memory_types=frozenset() if types == _KNOWN_TYPES else types,
    )


def _direction(vector: Vector) -> Vector | None:
    return unit(vector) if np.isfinite(vector).all() else None
