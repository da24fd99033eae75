"""Getting a collection ready for use; plain calls that wait, made from the opening thread."""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymilvus import MilvusClient, MilvusException

from memory_service.adapters.milvus.causes import Cause, cause_of
from memory_service.adapters.milvus.layout import (
    SELF_TEST_IDS,
    indexes,
    schema,
    self_test_rows,
)
from memory_service.adapters.milvus.refusals import IndexBroken, IndexBusy
from memory_service.domain.errors import IndexUnavailable

_OLDEST = (2, 3)
"""COSINE and upsert came with Milvus 2.3."""

_SAME = 0.99
_ACROSS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """What was found on opening."""

    collection: str
    lite: bool
    server_version: str

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor; the oldest that serves us when the server says something else."""
        numbers = re.search(r"(\d+)\.(\d+)", self.server_version)
        return (int(numbers[1]), int(numbers[2])) if numbers else _OLDEST


class EmbeddedMilvus:
    """milvus-lite in this process, on a free loopback port. Raises IndexBusy or IndexBroken.

    We start it ourselves: its own way through pymilvus hides why it failed, and takes only paths
    that end in .db. It has no lock of its own on writes: one thread at a time may write.
    """

    def __init__(self, folder: str) -> None:
        # Read when milvus_lite is imported: rows not flushed yet cost 20 to 25 µs each per search.
        os.environ.setdefault("MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES", "1000000")
        from milvus_lite.adapter.grpc.server import start_server_in_thread  # noqa: PLC0415
        from milvus_lite.exceptions import DataDirLockedError, MilvusLiteError  # noqa: PLC0415

        path = Path(folder).absolute()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._server, self._database, port = start_server_in_thread(str(path), host="127.0.0.1")
        except DataDirLockedError:
            message = f"the milvus-lite index {folder} is in use by another process"
            raise IndexBusy(message) from None
        except (MilvusLiteError, OSError) as fault:
            message = (
                f"the milvus-lite index {folder} cannot be opened ({fault}); it can be rebuilt: "
                "move it away, start again and run reindex"
            )
            raise IndexBroken(message) from fault
        self.uri = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        """Stop it and let go of the folder."""
        self._server.stop(grace=1).wait()
        self._database.close()


def connect(uri: str, token: str, *, lite: bool, timeout: float) -> MilvusClient:
    """Connect, waiting at most timeout seconds for the peer to answer."""
    # Each failed call would log its traceback with the filter in it; we log one event instead.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    # gRPC hangs up on who pings as often as pymilvus does by default (10 s); inside one process
    # there is nothing to keep alive.
    options = {"grpc.keepalive_time_ms": 2**31 - 1} if lite else {}
    client = MilvusClient(uri, token=token, timeout=timeout, dedicated=True, grpc_options=options)
    # pymilvus would reconnect inside the failed call, holding a lock of the whole process for as
    # long as the peer is silent. We open again ourselves, in the background.
    client._handler._on_rpc_error = lambda _fault: False  # noqa: SLF001
    return client


def look(client: MilvusClient, collection: str, *, lite: bool, timeout: float) -> IndexFacts:
    """Ask the server what it is."""
    version = str(client.get_server_version(timeout=timeout))
    return IndexFacts(collection=collection, lite=lite, server_version=version)


def exists(client: MilvusClient, collection: str, timeout: float) -> bool:
    """Tell whether the collection is there."""
    return bool(client.has_collection(collection, timeout=timeout))


def prepare(client: MilvusClient, facts: IndexFacts, dims: int, timeout: float) -> None:
    """Create the collection if it is missing, load it and check it.

    Raises IndexUnavailable "dim_mismatch" for a collection of other vectors, which is left alone,
    and "unfit" for a Milvus that cannot serve us.
    """
    if not facts.lite and facts.version < _OLDEST:
        raise IndexUnavailable(Cause.UNFIT)
    if not exists(client, facts.collection, timeout):
        _create(client, facts, dims, timeout)
    if _dims(client.describe_collection(facts.collection, timeout=timeout)) != dims:
        raise IndexUnavailable(Cause.DIM_MISMATCH)
    # Also if it was there: another replica may be about to index it, or have died before it did.
    _index(client, facts, timeout)
    _load(client, facts, timeout)
    _self_test(client, facts, dims, timeout)


def _create(client: MilvusClient, facts: IndexFacts, dims: int, timeout: float) -> None:
    try:
        client.create_collection(
            facts.collection,
            schema=schema(dims),
            consistency_level="Bounded",
            timeout=timeout,
        )
    except MilvusException:
        # Another replica may have been faster.
        if not exists(client, facts.collection, timeout):
            raise


def _index(client: MilvusClient, facts: IndexFacts, timeout: float) -> None:
    """Make the indexes that are missing."""
    for index in indexes(lite=facts.lite, version=facts.version):
        if _indexed(client, facts, index.field_name, timeout):
            continue
        alone = MilvusClient.prepare_index_params()
        alone.append(index)
        try:
            client.create_index(facts.collection, alone, timeout=timeout)
        except MilvusException:
            # Another replica may have been faster.
            if not _indexed(client, facts, index.field_name, timeout):
                raise


def _indexed(client: MilvusClient, facts: IndexFacts, field: str, timeout: float) -> bool:
    return bool(client.list_indexes(facts.collection, field_name=field, timeout=timeout))


def _load(client: MilvusClient, facts: IndexFacts, timeout: float) -> None:
    """Have the collection in memory, with all its indexes."""
    try:
        client.load_collection(facts.collection, timeout=timeout)
    except MilvusException as fault:
        if cause_of(fault) is not Cause.REFUSED:
            raise
        # It was loaded before its last index came, and a server refuses to load it otherwise.
        client.release_collection(facts.collection, timeout=timeout)
        client.load_collection(facts.collection, timeout=timeout)


def _self_test(client: MilvusClient, facts: IndexFacts, dims: int, timeout: float) -> None:
    """Search for a known vector: the same scores 1, an orthogonal one 0.

    Raises IndexUnavailable "unfit" otherwise: some versions of milvus-lite gave distances.
    """
    rows = self_test_rows(dims)
    cosines = _cosines(client, facts, rows[0], timeout)
    if cosines.keys() != set(SELF_TEST_IDS):
        client.upsert(facts.collection, list(rows), timeout=timeout)
        cosines = _cosines(client, facts, rows[0], timeout)
    same, across = (cosines.get(memory_id) for memory_id in SELF_TEST_IDS)
    if same is None or across is None:
        raise IndexUnavailable(Cause.UNAVAILABLE)
    if same < _SAME or abs(across) > _ACROSS:
        raise IndexUnavailable(Cause.UNFIT)


def _cosines(
    client: MilvusClient, facts: IndexFacts, row: Mapping[str, object], timeout: float
) -> dict[str, float]:
    (hits,) = client.search(
        facts.collection,
        data=[row["vector"]],
        filter='user_id == ""',
        limit=len(SELF_TEST_IDS),
        consistency_level="Strong",
        timeout=timeout,
    )
    return dict(zip(hits.ids, hits.distances, strict=True))


def _dims(description: Mapping[str, Any]) -> int:
    """Give the length of the collection's vectors; 0 if it has none of ours."""
    lengths = {field["name"]: field["params"].get("dim", 0) for field in description["fields"]}
    return int(lengths.get("vector", 0))
