"""What the use cases need from the outside world, as Protocols.

Every port has a fake in tests/fakes and at least one adapter; all pass the same contract suite.
Waiting happens only here: each method is bounded in time by its adapter or by its caller.
"""

from memory_service.ports.embedder import (
    Embedder,
)
from memory_service.ports.history import (
    MemoryHistory,
    News,
)
from memory_service.ports.index import (
    Collections,
    IndexFilter,
    IndexHit,
    IndexNote,
    IndexOutbox,
    VectorIndex,
)
from memory_service.ports.jobs import (
    ClaimedJob,
    JobFilter,
    JobQueue,
    JobReader,
    JobRows,
    QueueState,
)
from memory_service.ports.learning import (
    FactExtractor,
    RelationJudge,
)
from memory_service.ports.reading import (
    MemoryFilter,
    MemoryReader,
    MemorySnapshot,
    PinnedQuery,
    StoredRow,
    StoreStats,
    UserView,
)
from memory_service.ports.removal import (
    Counts,
    Removal,
)
from memory_service.ports.types import (
    Clock,
    NewId,
    Vector,
)
from memory_service.ports.upkeep import (
    Due,
    Forgetting,
    IndexAudit,
    IndexView,
    MemoryRef,
)
from memory_service.ports.writing import (
    MemoryWriter,
    RequestKey,
    Transaction,
)

__all__ = [
    "ClaimedJob",
    "Clock",
    "Collections",
    "Counts",
    "Due",
    "Embedder",
    "FactExtractor",
    "Forgetting",
    "IndexAudit",
    "IndexFilter",
    "IndexHit",
    "IndexNote",
    "IndexOutbox",
    "IndexView",
    "JobFilter",
    "JobQueue",
    "JobReader",
    "JobRows",
    "MemoryFilter",
    "MemoryHistory",
    "MemoryReader",
    "MemoryRef",
    "MemorySnapshot",
    "MemoryWriter",
    "NewId",
    "News",
    "PinnedQuery",
    "QueueState",
    "RelationJudge",
    "Removal",
    "RequestKey",
    "StoreStats",
    "StoredRow",
    "Transaction",
    "UserView",
    "Vector",
    "VectorIndex",
]
