"""Learning from conversations: what was said, what is read out of it, what becomes of that."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from memory_service.domain.model import Memory, MemoryType, Role, UserState


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMessage:
    """One message of a turn; timezone: an IANA name or an offset such as +08:00, empty for UTC."""

    role: Role
    content: str
    create_time: datetime
    timezone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a user and an assistant said to each other, in order, and where."""

    user_id: str
    conversation_id: str
    turn_id: str = ""
    assistant_id: str = ""
    run_id: str = ""
    messages: tuple[TurnMessage, ...]


class Intent(StrEnum):
    """What the user wanted of a turn."""

    PREFERENCE = "preference"
    PERSONAL_FACT = "personal_fact"
    STANDING_INSTRUCTION = "standing_instruction"
    CHITCHAT = "chitchat"
    TASK_REQUEST = "task_request"
    KNOWLEDGE_QA = "knowledge_qa"

    @property
    def stores(self) -> bool:
        """Tell whether facts of such a turn are kept."""
        return self in _STORING


_STORING = frozenset({Intent.PREFERENCE, Intent.PERSONAL_FACT, Intent.STANDING_INSTRUCTION})

CONFIDENCE = 0.6
"""Of a fact whose extractor says nothing about it."""
IMPORTANCE: Mapping[MemoryType, float] = {
    MemoryType.CONSTRAINT: 0.95,
    MemoryType.PREFERENCE: 0.85,
    MemoryType.TODO_HINT: 0.6,
    MemoryType.FACT: 0.6,
}
"""Of a fact whose extractor says nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement about the user as an extractor read it; None and "" mean it said nothing."""

    memory_type: MemoryType
    content: str
    title: str = ""
    confidence: float | None = None
    importance: float | None = None
    sensitivity_level: int = 0
    is_explicit: bool = False
    expire_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What an extractor read out of a turn; warnings are the words of IngestOutcome.warnings."""

    intent: Intent
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()


class Relation(StrEnum):
    """What a new fact is to a memory that is already there."""

    DUPLICATE = "duplicate"
    UPDATE = "update"
    CONFLICT = "conflict"
    UNRELATED = "unrelated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a fact is to one candidate; merged is the text of both, needed for an update only."""

    memory_id: str
    relation: Relation
    merged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory that a fact was compared with: likeness in 0..1, and what the fact is to it."""

    memory_id: str
    score: float
    relation: Relation


class Action(StrEnum):
    """What becomes of a fact."""

    ADD = "add"
    UPDATE = "update"
    NONE = "none"


class Reason(StrEnum):
    """Why a fact became what it did."""

    SAME_HASH = "same_hash"
    DUPLICATE = "duplicate"
    UPDATE = "update"
    CONFLICT = "conflict"
    NEW = "new"
    LOW_CONFIDENCE = "low_confidence"
    SECRET = "secret"  # noqa: S105 - a word of the contract
    SETTINGS = "settings"
    INVALID_FACT = "invalid_fact"
    TOO_MANY_FACTS = "too_many_facts"
    INTENT = "intent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of one fact, and why; the fields are those of the contract's Decision.

    fact holds the text and values to store, merged for an update, or the fact as read if nothing
    is stored; without words if they must not be kept (domain.drafts.dropped). model is empty for
    rules.
    """

    fact: Memory
    action: Action
    reason: Reason
    memory_id: str = ""
    superseded_ids: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    model: str = ""
    prompt_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOutcome:
    """What came of a turn.

    intent is an Intent, or "" if the turn was not read at all; the only warning then says why:
    settings or erased.
    """

    intent: str = ""
    decisions: tuple[Decision, ...] = ()
    warnings: tuple[str, ...] = ()


NOT_ALLOWED = "settings"
ERASED = "erased"


def why_not_learnt(state: UserState, turn: Turn) -> str:
    """Say why nothing may be learnt from a turn: NOT_ALLOWED, ERASED, or "" if it may.

    It was erased if the user said nothing in it since the erasure.
    """
    if not state.settings.memory_enabled:
        return NOT_ALLOWED
    left = since_erased(state, turn)
    if left != turn and not any(said.role is Role.USER for said in left.messages):
        return ERASED
    return ""


def since_erased(state: UserState, turn: Turn) -> Turn:
    """Give the turn without what was said until the user was erased, if ever."""
    erased = state.erase_time
    if erased is None:
        return turn
    return replace(turn, messages=tuple(m for m in turn.messages if m.create_time > erased))


def wordless(turn: Turn) -> Turn:
    """Give the turn without what was said: what a job keeps of it once it is done."""
    return replace(turn, messages=())


class JobState(StrEnum):
    """Where a job is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    PARKED = "parked"

    @property
    def is_unfinished(self) -> bool:
        """Tell whether a worker has it, or will."""
        return self in {JobState.PENDING, JobState.RUNNING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A turn to learn from; seq orders a user's jobs, next_attempt_time is set while pending.

    attempt counts attempts begun, outages those given back in a row because something was away.
    """

    job_id: str
    seq: int
    request_id: str
    turn: Turn
    state: JobState = JobState.PENDING
    attempt: int = 0
    outages: int = 0
    next_attempt_time: datetime | None = None
    last_error: str = ""
    outcome: IngestOutcome | None = None
    create_time: datetime
