"""How Retrieve works, and how long it may take."""

from dataclasses import dataclass, field

from memory_service.domain.rank import Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveSettings:
    """What a request cannot override; times in seconds."""

    weights: Weights = field(default_factory=Weights)
    exact: bool = False
    """Cosines from the embeddings in SQL, without the index (MEMORY_SEMANTIC=exact)."""
    total: float = 1.5
    """Most time for an answer, whatever the caller allows."""
    search_share: float = 0.5
    search_most: float = 0.4
    """Embedder and index together get this share of the time, and never more than that."""
    index_limit: int = 200
    """So many nearest rows are asked of the index."""
    row_limit: int = 20_000
    """So many rows of a user are searched for words and without the index."""
    working_set_bytes: int = 256 * 2**20
    """All working sets together, by their own estimate."""
    query_bytes: int = 8192
    """The embedder gets the first so many bytes of a query."""
    embed_limit: int = 32
    """So many rows are embedded on the fly when SQL has no embedding of them yet."""
    alike_patience: float = 10.0
    """How long embedder and index are waited for by those who look for rows like a statement."""
    touch_interval: float = 1.0
    """How long recalled memories are collected before last_access_time is written."""


@dataclass(frozen=True, slots=True)
class Until:
    """Times of the event loop's clock at which a Retrieve gives up waiting."""

    start: float
    search: float
    """For embedder and index."""
    rows: float
    """For the working set; what is left after it is for reading the rows that the index named."""
    end: float


def until(settings: RetrieveSettings, *, start: float, deadline: float) -> Until:
    """Divide the seconds that are left."""
    total = min(deadline, settings.total)
    search = min(total * settings.search_share, settings.search_most)
    return Until(start, start + search, start + (search + 3 * total) / 4, start + total)
