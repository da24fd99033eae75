"""Milvus as the vector index: an embedded milvus-lite folder or a server, 2.3 and newer."""

from memory_service.adapters.milvus.causes import Cause
from memory_service.adapters.milvus.connection import MilvusAddress, Timeouts
from memory_service.adapters.milvus.index import MilvusIndex
from memory_service.adapters.milvus.opening import IndexBroken, IndexBusy, IndexFacts

__all__ = [
    "Cause",
    "IndexBroken",
    "IndexBusy",
    "IndexFacts",
    "MilvusAddress",
    "MilvusIndex",
    "Timeouts",
]
