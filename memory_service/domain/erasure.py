"""What an erasure removed, and from where."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Store(StrEnum):
    """Where something of a user is kept, as a receipt names it: tables, and the index."""

    MEMORIES = "memories"
    EMBEDDINGS = "memory_embeddings"
    HISTORY = "memory_history"
    JOBS = "memory_jobs"
    REQUESTS = "memory_requests"
    OUTBOX = "memory_index_outbox"
    STATES = "memory_user_states"
    INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Rows removed, or emptied of content, and the stores that will be told until they obey."""

    erase_time: datetime
    erased: Mapping[Store, int]
    pending: tuple[Store, ...] = ()
