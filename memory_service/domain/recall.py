"""The words of a Retrieve: what is asked, what each leg did, what was found and dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from memory_service.domain.model import Memory, MemoryType, Scope


class Mode(StrEnum):
    """How Retrieve works."""

    HYBRID = "hybrid"
    LEGACY = "legacy"


class Cut(StrEnum):
    """How hard searched rows that do not fit are held back."""

    OFF = "off"
    GATE = "gate"
    TIGHT = "tight"
    STRICT = "strict"


class Leg(StrEnum):
    """A way to find memories."""

    PINNED = "pinned"
    SEMANTIC = "semantic"
    KEYWORD = "keyword"


class LegState(StrEnum):
    """How a leg did."""

    OK = "ok"
    DEGRADED = "degraded"
    SKIPPED = "skipped"
    FAILED = "failed"


class DropReason(StrEnum):
    """Why a row that was allowed is not in the answer, in the order in which they are tried."""

    DUPLICATE_ID = "duplicate_id"
    DUPLICATE_HASH = "duplicate_hash"
    DUPLICATE_TEXT = "duplicate_text"
    CUT = "cut"
    BELOW_MIN_RELEVANCE = "below_min_relevance"
    TYPE_BUDGET = "type_budget"
    LIMIT = "limit"
    TOKEN_BUDGET = "token_budget"  # noqa: S105 — not a password
    RESPONSE_BYTES = "response_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeBudgets:
    """Most items per type, 0..200 each; a fact's budget also serves unknown types."""

    constraint: int = 5
    preference: int = 5
    todo_hint: int = 3
    fact: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One Retrieve, already checked and with the server's settings filled in."""

    scope: Scope
    text: str = ""
    conversation_id: str = ""
    mode: Mode = Mode.HYBRID
    memory_types: frozenset[MemoryType] = frozenset()
    """Empty: all."""
    budgets: TypeBudgets = TypeBudgets()
    limit: int = 0
    """0: as the budgets allow (legacy: 5)."""
    token_budget: int = 0
    """0: no limit."""
    min_relevance: float = 0.0
    cut: Cut = Cut.OFF
    explain: bool = False
    min_revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What one leg did."""

    leg: Leg
    state: LegState
    reason: str = ""
    candidates: int = 0
    elapsed: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A row that some leg brought, on its way through dedup, rank and budget."""

    memory: Memory
    legs: frozenset[Leg]
    relevance: float = 0.0
    """0 for a row that only the pinned leg brought."""
    relevance_parts: Mapping[str, float] = field(default_factory=dict)
    held_back: bool = False
    """The cut leaves it out, unless the pinned leg brought it too."""

    @property
    def pinned(self) -> bool:
        """Tell whether the pinned leg brought it."""
        return Leg.PINNED in self.legs


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its score; the parts add up to the score."""

    candidate: Candidate
    score: float
    score_parts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A row left out, and why."""

    memory_id: str
    reason: DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found and what was not; see RetrieveResponse for what each number promises."""

    items: Sequence[Ranked]
    sources: Sequence[Source]
    degraded: bool
    revision: int
    stage_counts: Mapping[str, int]
    dropped: Sequence[Dropped] = ()
    pinned_total: int = 0
    pinned_returned: int = 0
