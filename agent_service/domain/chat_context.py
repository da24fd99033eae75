"""What a plain chat turn offers to the assembler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent_service.domain.components import Component, Item, Truncate, Zone
from agent_service.domain.model import Message, Role
from agent_service.domain.render import MEMORY_PRIORITY, as_related

PRIORITY: Mapping[str, int] = {
    "instructions": 1000,
    **MEMORY_PRIORITY,
    "user_turn": 900,
    "tools": 500,
    "recent_history": 400,
    "older_summary": 300,
    "examples": 200,
}
"""By kind; see SPEC: what must be said, then what the user asked for, then what helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How a deployment divides the budget: most tokens by kind, and the step of the history."""

    caps: Mapping[str, int] = field(default_factory=dict)
    truncation_step: int = 1024


def chat_components(
    *,
    instructions: str,
    memory: Sequence[Component],
    history: Sequence[Message],
    user_text: str,
    more: Sequence[Component] = (),
    shares: Shares | None = None,
) -> list[Component]:
    """Give the components of one model call.

    Instructions and the user's message are required. Layout, for a provider's prefix cache:
    instructions, then the dialogue so far (oldest first), then memory, the user's message last.
    history is oldest first and should begin where it began last time: it is the truncation step
    that keeps its first message, and so the cache. Answers at its beginning whose question is not
    part of it are left out: some models refuse a dialogue that the assistant opens. more are
    components of the caller, such as tools and examples; where they stand is theirs to say. A blank
    user_text is left out.
    """
    shares = shares or Shares()
    parts = [
        _required("instructions", instructions, Zone.STABLE, Role.SYSTEM),
        *more,
        *_history(history, shares.truncation_step),
        *memory,
    ]
    if user_text.strip():
        parts.append(_required("user_turn", user_text, Zone.LAST, Role.USER))
    return [_capped(part, shares.caps.get(part.kind)) for part in parts]


def execute_components(
    *,
    state: str,
    plan_anchor: str,
    memory: Sequence[Component],
    next_step: str,
    final_instruction: str,
) -> list[Component]:
    """Give the last system message of the execute stage, msg3, in that order.

    Of memory the block memory_context is taken over, once. Blank parts are left out.
    """
    texts = {
        "state": state,
        "plan_anchor": plan_anchor,
        "next_step": next_step,
        "final_instruction": final_instruction,
    }
    parts = [
        Component(
            id=kind,
            kind=kind,
            text=text,
            priority=PRIORITY["instructions"],
            required=True,
            zone=Zone.LAST,
            order=10 * place,
        )
        for place, (kind, text) in enumerate(texts.items())
        if text.strip()
    ]
    middle = 10 * list(texts).index("next_step") - len(MEMORY_PRIORITY)
    return parts + [
        replace(part, zone=Zone.LAST, order=middle + part.order) for part in as_related(memory)
    ]


def _required(kind: str, text: str, zone: Zone, role: Role) -> Component:
    return Component(
        id=kind, kind=kind, text=text, priority=PRIORITY[kind], required=True, zone=zone, role=role
    )


def _history(history: Sequence[Message], step: int) -> list[Component]:
    items = []
    exchange = 0
    asked = next((at for at, message in enumerate(history) if message.role is Role.USER), 0)
    for message in history[asked:]:
        exchange += message.role is Role.USER
        group = f"exchange {exchange}"
        items.append(Item(text=message.content, role=message.role, group=group))
    if not items:
        return []
    return [
        Component(
            id="recent_history",
            kind="recent_history",
            items=tuple(items),
            priority=PRIORITY["recent_history"],
            truncate=Truncate.ITEMS,
            zone=Zone.SEMI,
            truncation_step=step,
        )
    ]


def _capped(component: Component, cap: int | None) -> Component:
    """Lower the component's cap to that of its kind; required ones have none."""
    if cap is None or component.required:
        return component
    cap = min(cap, component.max_tokens or cap)
    return replace(component, max_tokens=cap, min_tokens=min(component.min_tokens, cap))
