"""Giving memories the embeddings that they lack, and keeping those in SQL."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory_service.domain.errors import EmbedderUnavailable
from memory_service.domain.text import indexed_text
from memory_service.ports import Embedder, IndexOutbox, StoredRow, Vector


@dataclass(frozen=True, slots=True)
class Embedded:
    """Rows by what can be done with them; together they are the rows that were given."""

    usable: Sequence[StoredRow]
    hopeless: Sequence[StoredRow]
    """The embedder has no usable vector for their words."""


async def embed_missing(
    rows: Sequence[StoredRow], *, embedder: Embedder, outbox: IndexOutbox
) -> Embedded:
    """Embed rows without a vector and keep what came of it.

    Raises EmbedderUnavailable, before anything is kept, and StoreUnavailable.
    """
    bare = [row for row in rows if row.vector is None]
    if bare:
        vectors = await embedder.embed_documents([indexed_text(row.memory) for row in bare])
        if len(vectors) != len(bare):
            raise EmbedderUnavailable(_UNAVAILABLE)
        found = dict(zip((row.memory.memory_id for row in bare), vectors, strict=True))
        await _keep(bare, found, embedder=embedder, outbox=outbox)
        rows = [replace(row, vector=found.get(row.memory.memory_id, row.vector)) for row in rows]
    usable = [row for row in rows if is_usable(row.vector)]
    hopeless = [row for row in rows if not is_usable(row.vector)]
    return Embedded(usable, hopeless)


def is_usable(vector: Vector | None) -> bool:
    """Tell whether a vector is finite and not zero."""
    return vector is not None and bool(np.isfinite(vector).all()) and bool(vector.any())


_UNAVAILABLE = "unavailable"


async def _keep(
    bare: Sequence[StoredRow],
    found: dict[str, Vector],
    *,
    embedder: Embedder,
    outbox: IndexOutbox,
) -> None:
    worth_keeping = {memory_id: vector for memory_id, vector in found.items() if is_usable(vector)}
    if worth_keeping:
        await outbox.store_vectors(
            worth_keeping,
            fingerprint=embedder.fingerprint,
            versions={row.memory.memory_id: row.memory.version for row in bare},
        )
