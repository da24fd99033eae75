"""What a collection looks like: its name, its fields, its indexes, and a memory as a row of it."""

import re
from collections.abc import Sequence

import numpy as np
from pymilvus import DataType, MilvusClient
from pymilvus.milvus_client.index import IndexParams
from pymilvus.orm.schema import CollectionSchema

from memory_service.adapters.milvus.expressions import NEVER, microseconds
from memory_service.ports import StoredRow, Vector

ID_BYTES = 128
"""Longest id. The server counts bytes, milvus-lite characters, so both take all our ids."""

SELF_TEST_IDS = ("selftest 0", "selftest 1")
"""Two orthogonal rows of no user (an empty user_id), which show which way cosines run."""

_TYPE_BYTES = 32
_SAFE_NAMESPACE = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]{0,63})?")
_SAFE_FINGERPRINT = re.compile(r"[a-z0-9_]{1,64}")


def collection_name(namespace: str, fingerprint: str) -> str:
    """Give the collection of an embedder. Raises ValueError for names that Milvus cannot take."""
    if not _SAFE_NAMESPACE.fullmatch(namespace):
        message = f"Milvus namespace {namespace!r}: letters, digits and _, no digit first, max 64"
        raise ValueError(message)
    if not _SAFE_FINGERPRINT.fullmatch(fingerprint):
        message = f"fingerprint {fingerprint!r}: [a-z0-9_]{{1,64}}"
        raise ValueError(message)
    return f"{namespace}memories_{fingerprint}"


def schema(dims: int) -> CollectionSchema:
    """Give the fields: the primary key, the vector, and a scalar column for each gate."""
    fields = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    fields.add_field("memory_id", DataType.VARCHAR, is_primary=True, max_length=ID_BYTES)
    fields.add_field("vector", DataType.FLOAT_VECTOR, dim=dims)
    for column in ("user_id", "assistant_id", "run_id"):
        fields.add_field(column, DataType.VARCHAR, max_length=ID_BYTES)
    fields.add_field("memory_type", DataType.VARCHAR, max_length=_TYPE_BYTES)
    fields.add_field("is_explicit", DataType.BOOL)
    fields.add_field("sensitivity_level", DataType.INT8)
    fields.add_field("expire_time", DataType.INT64)
    return fields


def indexes(*, lite: bool, version: tuple[int, int]) -> IndexParams:
    """Give the indexes. FLAT: each search is for one user, so a graph of everybody loses hits.

    Seen with HNSW under a user filter: on the server 26 of a user's 200 rows among 20,000 (2.3.5,
    ef 256), on lite recall 0.63 for 0.76. FLAT is exact and computes only the rows that pass the
    filter; on a server those are found by a scalar index: INVERTED since 2.4, Trie before.
    """
    params = MilvusClient.prepare_index_params()
    params.add_index("vector", index_type="FLAT", metric_type="COSINE")
    if not lite:
        params.add_index("user_id", index_type="INVERTED" if version >= (2, 4) else "Trie")
    return params


def entity(row: StoredRow, dims: int) -> dict[str, object]:
    """Give a memory as a row. Raises ValueError for a vector that has no direction."""
    memory = row.memory
    if not usable(row.vector, dims):
        message = f"memory {memory.memory_id!r} has no usable vector of {dims} dimensions"
        raise ValueError(message)
    return {
        "memory_id": memory.memory_id,
        "vector": row.vector,
        "user_id": memory.user_id,
        "assistant_id": memory.assistant_id,
        "run_id": memory.run_id,
        "memory_type": memory.memory_type.value,
        "is_explicit": memory.is_explicit,
        "sensitivity_level": memory.sensitivity_level,
        "expire_time": microseconds(memory.expire_time) if memory.expire_time else NEVER,
    }


def usable(vector: Vector | None, dims: int) -> bool:
    """Tell whether a vector has the right length, is finite, and is not zero."""
    return (
        vector is not None
        and vector.shape == (dims,)
        and bool(np.isfinite(vector).all())
        and bool(vector.any())
    )


def self_test_rows(dims: int) -> Sequence[dict[str, object]]:
    """Give the two rows of the self-test: the first two unit vectors."""
    directions = np.eye(2, dims, dtype=np.float32)
    return [
        {
            "memory_id": memory_id,
            "vector": direction,
            "user_id": "",
            "assistant_id": "",
            "run_id": "",
            "memory_type": "unknown",
            "is_explicit": False,
            "sensitivity_level": 0,
            "expire_time": NEVER,
        }
        for memory_id, direction in zip(SELF_TEST_IDS, directions, strict=True)
    ]
