"""The words of context assembly: components, a budget, and the report of what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """What became of a component."""

    FULL = "full"
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    FALLBACK = "fallback"


class Reason(StrEnum):
    """Why."""

    NONE = "none"
    BUDGET = "budget"
    COMPONENT_CAP = "component_cap"
    EMPTY = "empty"
    BELOW_MIN_USEFUL = "below_min_useful"
    GROUP = "group"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentReport:
    """What became of one component; see ContextComponentReport in agent.proto."""

    id: str
    kind: str
    priority: int
    status: Status
    reason: Reason
    original_tokens: int
    tokens: int
    original_exact: bool
    items_in: int
    items_kept: int
    zone: str
    sha256: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport:
    """What a model call was given, without its text; see ContextReport in agent.proto."""

    window: int
    reserved_output: int
    usable: int
    total_tokens: int
    overhead_tokens: int
    counter: str
    exact: bool
    stable_prefix_tokens: int
    components: Sequence[ComponentReport]
    dropped: int
    truncated: int
    assemble_micros: int = 0
    actual_prompt_tokens: int | None = None
    model_call: int = 1
