"""The vector index port over Milvus."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymilvus import MilvusClient

from memory_service.adapters.breaker import Breaker
from memory_service.adapters.milvus import expressions, layout
from memory_service.adapters.milvus.address import MilvusAddress, Timeouts
from memory_service.adapters.milvus.causes import Cause
from memory_service.adapters.milvus.connection import Lane, MilvusConnection
from memory_service.adapters.milvus.opening import IndexFacts
from memory_service.domain.errors import IndexUnavailable
from memory_service.ports import Collections, IndexFilter, IndexHit, StoredRow, Vector

_UPSERT_BATCH = 500
_READY_AGE = 5.0
"""Seconds for which a ready mark is believed: another replica may find the collection lost."""


class MilvusIndex:
    """Implements ports.VectorIndex over one collection, named by namespace and fingerprint.

    Constructing connects to nothing, see start(). A Milvus that is away is opened again in the
    background; until then calls fail at once with IndexUnavailable.
    """

    def __init__(
        self,
        address: MilvusAddress,
        *,
        fingerprint: str,
        dims: int,
        collections: Collections,
        timeouts: Timeouts | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self.collection = layout.collection_name(address.namespace, fingerprint)
        self.lite = address.lite
        self._namespace = address.namespace
        self._dims = dims
        self._collections = collections
        self._timeouts = timeouts or Timeouts()
        self._connection = MilvusConnection(
            address,
            collection=self.collection,
            dims=dims,
            collections=collections,
            timeouts=self._timeouts,
            breaker=breaker or Breaker(),
        )
        self._ready = (-1, 0.0)

    @property
    def facts(self) -> IndexFacts | None:
        """What was found when it was opened last; None before."""
        return self._connection.facts

    async def start(self) -> None:
        """Begin to open. Waits for no server: it may come whenever it likes.

        The embedded Milvus is open when this returns; raises IndexBusy when another process holds
        its folder, IndexBroken when it cannot be read. Without start() the first call opens.
        """
        await self._connection.start()

    async def search(
        self, vector: Vector, wanted: IndexFilter, *, limit: int
    ) -> Sequence[IndexHit]:
        """Give the nearest rows, nearest first; none for a vector without direction.

        Raises IndexUnavailable: timeout, unavailable, breaker_open, reindexing, dim_mismatch,
        unfit, busy; and StoreUnavailable when SQL cannot say whether the collection is ready.
        """
        expression = expressions.searched(wanted)
        if not layout.usable(vector, self._dims):
            return []
        await self._check_ready()
        return await self._connection.call(
            Lane.SEARCH,
            self._timeouts.search,
            partial(self._search, vector=vector, expression=expression, limit=limit),
        )

    async def upsert(self, rows: Sequence[StoredRow]) -> None:
        """Write rows, in batches. Raises ValueError for an unusable vector, before any is written.

        Raises IndexUnavailable, with "refused" when Milvus answered that it cannot take a row.
        """
        entities = [layout.entity(row, self._dims) for row in rows]
        for start in range(0, len(entities), _UPSERT_BATCH):
            await self._write(partial(self._upsert, rows=entities[start : start + _UPSERT_BATCH]))

    async def remove(self, memory_ids: Sequence[str]) -> None:
        """Take rows out; unknown ids are fine. Raises IndexUnavailable."""
        for expression in expressions.of_memories(memory_ids):
            await self._write(partial(self._delete, expression=expression))

    async def ids(self, user_id: str) -> frozenset[str]:
        """Give all ids that the index holds of a user. Raises IndexUnavailable."""
        expression = expressions.of_user(user_id)
        return await self._connection.call(
            Lane.SEARCH, self._timeouts.write, partial(self._ids, expression=expression)
        )

    async def others(self) -> Sequence[str]:
        """Name the collections of other embedders in our namespace. Raises IndexUnavailable."""
        return await self._connection.call(Lane.WRITE, self._timeouts.write, self._others)

    async def drop(self, collection: str) -> None:
        """Drop a collection of another embedder, for good.

        Raises ValueError for any other collection, and IndexUnavailable.
        """
        if not self._is_other(collection):
            message = f"{collection} is no collection of another embedder"
            raise ValueError(message)
        wait = self._timeouts.write
        inside = self._timeouts.inside(wait)
        await self._connection.call(
            Lane.WRITE, wait, lambda client: client.drop_collection(collection, timeout=inside)
        )

    async def close(self) -> None:
        """Let go of it; calls on their way end with IndexUnavailable or are cancelled."""
        await self._connection.close()

    def _others(self, client: "MilvusClient") -> list[str]:
        wait = self._timeouts.inside(self._timeouts.write)
        return sorted(filter(self._is_other, client.list_collections(timeout=wait)))

    def _is_other(self, collection: str) -> bool:
        ours = layout.collection_name(self._namespace, "_").removesuffix("_")
        return collection.startswith(ours) and collection != self.collection

    async def _check_ready(self) -> None:
        """Raise IndexUnavailable "reindexing" unless the ready mark is there, or was just now."""
        connection = self._connection
        connection.check()
        openings, until = self._ready
        asked = time.monotonic()
        if openings == connection.openings and asked < until:
            return
        openings = connection.openings
        if not await self._collections.ready(self.collection):
            raise IndexUnavailable(Cause.REINDEXING)
        self._ready = (openings, asked + _READY_AGE)

    async def _write(self, work: Callable[[MilvusClient, float], None]) -> None:
        seconds = self._timeouts.write
        inside = self._timeouts.inside(seconds)

        def write(client: MilvusClient) -> None:
            work(client, inside)
            if self.lite:
                client.flush(self.collection, timeout=inside)

        await self._connection.call(Lane.WRITE, seconds, write)

    def _upsert(
        self, client: MilvusClient, seconds: float, *, rows: Sequence[dict[str, Any]]
    ) -> None:
        client.upsert(self.collection, list(rows), timeout=seconds)

    def _delete(self, client: MilvusClient, seconds: float, *, expression: str) -> None:
        client.delete(self.collection, filter=expression, timeout=seconds)

    def _ids(self, client: MilvusClient, *, expression: str) -> frozenset[str]:
        rows = client.query(
            self.collection,
            filter=expression,
            output_fields=["memory_id"],
            consistency_level="Strong",
            timeout=self._timeouts.inside(self._timeouts.write),
        )
        return frozenset(str(row["memory_id"]) for row in rows)

    def _search(
        self, client: MilvusClient, *, vector: Vector, expression: str, limit: int
    ) -> list[IndexHit]:
        (hits,) = client.search(
            self.collection,
            data=[vector],
            filter=expression,
            limit=limit,
            # without it milvus-lite sends the vectors back, which takes as long as the search
            output_fields=["memory_id"],
            consistency_level="Bounded",
            timeout=self._timeouts.inside(self._timeouts.search),
        )
        cosines = np.asarray(hits.distances, np.float64)
        finite = np.isfinite(cosines)
        if not finite.all():
            hits_found = [one for one, good in zip(hits.ids, finite, strict=True) if good]
            return _hits(hits_found, cosines[finite])
        return _hits(hits.ids, cosines)


def _hits(memory_ids: Sequence[str], cosines: NDArray[np.float64]) -> list[IndexHit]:
    """Give hits with cosines that rounding did not take out of their range."""
    return list(map(IndexHit, memory_ids, np.clip(cosines, -1.0, 1.0).tolist()))
