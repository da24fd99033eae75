"""Putting a prompt together under a token budget: one pure function."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from agent_service.domain.admit import Admission
from agent_service.domain.components import INT32_MAX, Budget, Component
from agent_service.domain.compose import Prompt, compose
from agent_service.domain.context import ComponentReport, ContextReport, Reason, Status
from agent_service.domain.errors import BudgetExceeded, InvalidComponent
from agent_service.domain.fit import Fate, Offer, dropped
from agent_service.domain.layout import check_blocks, layout
from agent_service.domain.model import Message
from agent_service.domain.price import offers, open_ledger
from agent_service.domain.sections import SEPARATOR, Section, sections
from agent_service.domain.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Assembly:
    """A prompt: its messages, the same as one text, and what became of each component.

    text is the contents of the messages with SEPARATOR between them; report.total_tokens is the
    count of text plus the framing of the messages.
    """

    messages: tuple[Message, ...]
    text: str
    report: ContextReport
    stable_prefix: str
    """What text begins with and what stays the same while the stable components do."""


def assemble(components: Sequence[Component], budget: Budget, counter: TokenCounter) -> Assembly:
    """Put a prompt together that takes at most budget.usable tokens, framing included.

    Admission goes by priority (ties by place in the input): required components first, then room
    is held for min_tokens, then each component gets what is left: whole, else by its fallback,
    else cut, else dropped; and the next one is tried. Layout goes by zone and order. The same
    input gives the same bytes in every process.

    Raises BudgetExceeded if the required ones do not fit, InvalidComponent (also a ValueError) for
    equal ids, a required component that is blank, a group that is required in part, or a block
    whose components disagree about it.
    """
    rendered = sections(components)
    _check(rendered)
    places = layout(section for section in rendered if not section.blank)
    offered = offers(places, budget, counter)
    admission = Admission(budget.usable, open_ledger(budget, counter), counter)
    admission.admit(offered, _halved(rendered))
    while True:
        prompt = compose(places, admission.fates, budget, counter)
        excess = prompt.most - budget.usable
        if excess <= 0:
            break
        if not admission.shrink(excess):
            ids = tuple(component.id for component in components if component.required)
            raise BudgetExceeded(needed=prompt.most, usable=budget.usable, ids=ids)
    parts = _reports(rendered, offered, admission.fates, exact=counter.exact)
    report = _report(parts, prompt, budget, counter)
    return Assembly(prompt.messages, prompt.text, report, prompt.stable)


def _check(rendered: Sequence[Section]) -> None:
    ids = Counter(section.component.id for section in rendered)
    twice = next((name for name, times in ids.items() if times > 1), None)
    if twice is not None:
        raise InvalidComponent(twice, "ids are unique")
    required: dict[str, bool] = {}
    for section in rendered:
        component = section.component
        if component.required and section.blank:
            raise InvalidComponent(component.id, "required, and blank")
        group = component.atomic_group
        if group and required.setdefault(group, component.required) != component.required:
            raise InvalidComponent(component.id, "a group is required as a whole")
    check_blocks(rendered)


def _halved(rendered: Iterable[Section]) -> frozenset[str]:
    """Give the groups that a blank member breaks."""
    return frozenset(
        section.component.atomic_group
        for section in rendered
        if section.component.atomic_group and section.blank
    )


def _report(
    components: tuple[ComponentReport, ...], prompt: Prompt, budget: Budget, counter: TokenCounter
) -> ContextReport:
    fates = Counter(component.status for component in components)
    return ContextReport(
        window=budget.window,
        reserved_output=budget.reserve_output,
        usable=budget.usable,
        total_tokens=prompt.total,
        overhead_tokens=prompt.total - sum([component.tokens for component in components]),
        counter=counter.name,
        exact=counter.exact,
        stable_prefix_tokens=prompt.stable_tokens,
        components=components,
        dropped=fates[Status.DROPPED],
        truncated=fates[Status.TRUNCATED],
    )


def _reports(
    rendered: Sequence[Section],
    offered: Sequence[Offer],
    fates: Mapping[int, Fate],
    *,
    exact: bool,
) -> tuple[ComponentReport, ...]:
    """Say what became of each component, in the order of the input."""
    original = {
        offer.section.position: min(sum(offer.counts), INT32_MAX)
        if len(offer.counts) > 1
        else offer.counts[0]
        for offer in offered
    }
    empty = dropped(Reason.EMPTY)
    reports = []
    for section in rendered:
        component = section.component
        status, reason, texts, items, tokens, _ = fates.get(section.position, empty)
        reports.append(
            ComponentReport(
                id=component.id,
                kind=component.kind,
                priority=component.priority,
                status=status,
                reason=reason,
                original_tokens=original.get(section.position, 0),
                tokens=tokens,
                original_exact=exact,
                items_in=len(section.items),
                items_kept=len(items),
                zone=component.zone,
                sha256=sha256(SEPARATOR.join(texts).encode()).digest() if texts else b"",
            )
        )
    return tuple(reports)
