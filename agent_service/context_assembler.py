"""Context assembly as a library: collect named parts, get one text that fits a token budget.

A thin builder over agent_service.domain.assemble, which see for what is promised.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypedDict

from agent_service.adapters.tokens_toktok import default_counter
from agent_service.domain.assemble import Assembly, assemble
from agent_service.domain.components import Budget, Component, Truncate, Trust
from agent_service.domain.context import ComponentReport, Status
from agent_service.domain.errors import InvalidComponent
from agent_service.domain.tokens import FunctionCounter, TokenCounter


class ComponentPriority(IntEnum):
    """Names for priorities; any integer 0..1000 is one."""

    CRITICAL = 100
    HIGH = 90
    MEDIUM = 70
    LOW = 50
    OPTIONAL = 30


@dataclass(frozen=True, slots=True)
class ContextComponent:
    """A named part of a prompt. It is required if it is CRITICAL or above and not truncatable."""

    name: str
    content: str
    priority: int
    truncatable: bool = True
    trust: Trust = Trust.TRUSTED

    @property
    def required(self) -> bool:
        """Tell whether assembly is refused rather than sending less than all of it."""
        return self.priority >= ComponentPriority.CRITICAL and not self.truncatable


class ComponentSummary(TypedDict):
    """What is sent of one part."""

    name: str
    priority: int
    tokens: int
    truncatable: bool


class Summary(TypedDict):
    """What assemble() gives, in numbers."""

    components: list[ComponentSummary]
    total_tokens: int
    budget: int
    overflow: int
    dropped: list[str]
    truncated: list[str]
    counter: str
    exact: bool


class ContextAssembler:
    """Collects parts and puts them together, highest priority first, within max_tokens.

    token_counter is a TokenCounter, or a function that counts one text; None: o200k, offline. Each
    call of assemble() starts afresh from the parts: nothing is remembered between calls.
    """

    def __init__(
        self,
        max_tokens: int = 16000,
        token_counter: TokenCounter | Callable[[str], int] | None = None,
    ) -> None:
        self._budget = Budget(window=max_tokens, per_message=0, per_call=0)
        if token_counter is None:
            self._counter = default_counter()
        elif callable(token_counter):
            self._counter = FunctionCounter(token_counter)
        else:
            self._counter = token_counter
        self._parts: dict[str, ContextComponent] = {}

    def add_component(
        self,
        name: str,
        content: str,
        priority: int,
        truncatable: bool = True,  # noqa: FBT001, FBT002 — the signature that callers know
        *,
        trust: Trust = Trust.TRUSTED,
    ) -> None:
        """Add a part under a header with its name.

        Mark what others wrote, such as retrieved documents, as Trust.UNTRUSTED: it then cannot
        forge a header. Raises InvalidComponent, which is a ValueError, for a name that was added
        before, or a priority outside 0..1000.
        """
        if any(part.name == name for part in self._parts.values()):
            raise InvalidComponent(name, "added before")
        part = ContextComponent(name, content, priority, truncatable, trust)
        name_id = self._new_id(name)
        _component(name_id, part)
        self._parts[name_id] = part

    def assemble(self) -> str:
        """Give the text. Raises BudgetExceeded if the required parts do not fit."""
        return self.assembly().text

    def assembly(self) -> Assembly:
        """Give the text with the report of what became of each part. Raises as assemble()."""
        parts = [_component(name_id, part) for name_id, part in self._parts.items()]
        return assemble(parts, self._budget, self._counter)

    def get_summary(self) -> Summary:
        """Say what assemble() gives; parts by priority, highest first. Raises as assemble().

        overflow is always 0: what did not fit is under dropped and truncated, by name.
        """
        report = self.assembly().report
        ranked = sorted(report.components, key=lambda part: -part.priority)
        return Summary(
            components=[self._summary(part) for part in ranked],
            total_tokens=report.total_tokens,
            budget=report.usable,
            overflow=0,
            dropped=self._names(ranked, Status.DROPPED),
            truncated=self._names(ranked, Status.TRUNCATED),
            counter=report.counter,
            exact=report.exact,
        )

    def _summary(self, report: ComponentReport) -> ComponentSummary:
        part = self._parts[report.id]
        return ComponentSummary(
            name=part.name,
            priority=part.priority,
            tokens=report.tokens,
            truncatable=part.truncatable,
        )

    def _names(self, reports: list[ComponentReport], status: Status) -> list[str]:
        return [self._parts[report.id].name for report in reports if report.status is status]

    def _new_id(self, name: str) -> str:
        """Give an id for a name; names that differ but look the same in ids get numbers."""
        stem = re.sub(r"[^a-z0-9_.-]", "_", name.lower())[:56] or "_"
        name_id, number = stem, 1
        while name_id in self._parts:
            number += 1
            name_id = f"{stem}-{number}"
        return name_id


def _component(name_id: str, part: ContextComponent) -> Component:
    return Component(
        id=name_id,
        title=part.name,
        text=part.content,
        priority=part.priority,
        required=part.required,
        truncate=Truncate.HEAD if part.truncatable else Truncate.NONE,
        trust=part.trust,
    )
