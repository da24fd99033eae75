"""What a prompt is put together from, and how much of it there may be."""

import re
from dataclasses import dataclass
from enum import StrEnum

from agent_service.domain.errors import InvalidComponent
from agent_service.domain.model import Role

INT32_MAX = 2**31 - 1
_ID = re.compile(r"[a-z0-9_.-]{1,64}")
_ID_RULE = "an id is [a-z0-9_.-]{1,64}"


class Truncate(StrEnum):
    """How a component may be cut: not at all, which part is kept, or only by whole items."""

    NONE = "none"
    HEAD = "head"
    TAIL = "tail"
    MIDDLE = "middle"
    ITEMS = "items"


class Zone(StrEnum):
    """How often a component changes, and so its place: the first zone stands first in a prompt."""

    STABLE = "stable"
    SEMI = "semi"
    VOLATILE = "volatile"
    LAST = "last"


class Trust(StrEnum):
    """Whether we wrote a text. What others wrote is escaped, so that it cannot forge a section."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing of a component that is kept whole or left out.

    An item with a role is a message of a dialogue: it is sent as a message of its own. An item
    without one is a line of its component. Items of the same group are kept or left out together.
    """

    text: str
    priority: int = 0
    """Of lines, higher is kept first; ties keep the earlier one. Dialogues drop their oldest."""
    role: Role | None = None
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced data section that several components fill together, under one intro.

    They stand side by side, each under its title as it is written, between `<id …>` and `</id>`;
    a block without any component in it is not there at all, nor is its intro.
    """

    id: str
    intro: str = ""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise InvalidComponent(self.id, _ID_RULE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One part of a prompt; either text or items. Raises InvalidComponent if it breaks its rules.

    All token numbers count the title, and for dialogues the framing of their messages.
    """

    id: str
    kind: str = ""
    title: str = ""
    """Written as `# TITLE` above the text, in a block as it is. Empty: no header."""
    text: str = ""
    items: tuple[Item, ...] = ()
    priority: int = 50
    """Who gets room first, 0..1000; ties go by place in the input."""
    required: bool = False
    """Sent in full, or assembly is refused."""
    truncate: Truncate = Truncate.NONE
    min_tokens: int = 0
    """Room kept free for it from optional components of higher priority."""
    max_tokens: int | None = None
    zone: Zone = Zone.VOLATILE
    order: int = 0
    """Place within its zone; ties go by priority, then by place in the input."""
    atomic_group: str = ""
    """Components of one group are sent all or none. Empty: no group."""
    fallback_text: str = ""
    """Stands in for a text that does not fit in full. Empty: none."""
    trust: Trust = Trust.TRUSTED
    role: Role = Role.SYSTEM
    block: Block | None = None
    truncation_step: int = 0
    """A dialogue drops its oldest messages by multiples of this many tokens; 0: as few as it can.

    So its first message, and with it a provider's prefix cache, stays for many turns.
    """

    def __post_init__(self) -> None:
        problem = _type_problem(self) or _problem(self)
        if problem:
            raise InvalidComponent(self.id, problem)


def _type_problem(component: Component) -> str:
    """Say which field has the wrong type; callers without a type checker reach this."""
    texts = (component.id, component.kind, component.title, component.text)
    if not all(isinstance(text, str) for text in (*texts, component.fallback_text)):
        return "texts are str"
    numbers = (component.priority, component.min_tokens, component.order, component.truncation_step)
    if not all(isinstance(number, int) for number in numbers):
        return "numbers are int"
    return ""


def _problem(component: Component) -> str:  # noqa: PLR0911 — one line for each rule
    if not _ID.fullmatch(component.id):
        return _ID_RULE
    if not 0 <= component.priority <= 1000:  # noqa: PLR2004 — the range of the spec
        return "priority is 0..1000"
    if component.min_tokens < 0 or component.truncation_step < 0:
        return "min_tokens and truncation_step are not negative"
    if component.max_tokens is not None and component.max_tokens < max(1, component.min_tokens):
        return "max_tokens is positive and at least min_tokens"
    if component.items:
        return _items_problem(component)
    if component.truncate is Truncate.ITEMS and component.text:
        return "a text has no items to leave out"
    return ""


def _items_problem(component: Component) -> str:
    if component.text or component.fallback_text:
        return "either text or items"
    if component.truncate not in (Truncate.NONE, Truncate.ITEMS):
        return "items are kept whole"
    roles = {item.role is None for item in component.items}
    if len(roles) > 1:
        return "items are all lines or all messages"
    if roles == {False} and (component.title or component.block):
        return "messages stand under no title and in no block"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens of a model call. Raises ValueError unless something is usable.

    per_message and per_call are what a model's own framing costs beyond the text (an upper bound
    for OpenAI's chat format: 3 and 1 for the role, and 3 that open the answer).
    """

    window: int
    reserve_output: int = 0
    safety: int = 0
    per_message: int = 4
    per_call: int = 3

    def __post_init__(self) -> None:
        if min(self.reserve_output, self.safety, self.per_message, self.per_call) < 0:
            msg = "the parts of a budget are not negative"
            raise ValueError(msg)
        if not 0 < self.usable <= INT32_MAX or self.window > INT32_MAX:
            msg = f"a budget of {self.usable} tokens is not usable"
            raise ValueError(msg)

    @property
    def usable(self) -> int:
        """Tokens that text and framing may take together."""
        return self.window - self.reserve_output - self.safety
