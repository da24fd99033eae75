"""What a component looks like in a prompt: header and body, safe to stand beside others."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agent_service.domain.components import Component, Item, Trust
from agent_service.domain.text import clean_text

SEPARATOR = "\n\n"
"""Between sections, and between the messages of Assembly.text."""
MEMORY_BLOCK = "memory_context"
"""The block of memories; nobody may forge its fence, also where it is absent."""

_TRUSTED = Trust.TRUSTED
_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_INVISIBLE = "\u200b-\u200f\u2060\ufeff"
_LINE_START = f"(?:^|(?<=[{_BREAKS}]))"
_HEADER_LIKE = re.compile(
    f"({_LINE_START}[ \\t{_INVISIBLE}]*)(?=#{{1,6}}(?:[\\s{_INVISIBLE}]|$)|【)"
)
_UNPRINTABLE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
)


class Section(NamedTuple):
    """A component as it would be sent, cleaned and escaped; position is its place in the input.

    A tuple, since there are thousands and a frozen dataclass takes four times as long to make.
    """

    position: int
    component: Component
    header: str
    body: str
    """Of a component without items."""
    fallback: str
    """A body that may stand in for it."""
    items: tuple[Item, ...]
    """Those that are not blank."""
    end: str
    """What stands behind it: in a block a line feed."""

    @property
    def blank(self) -> bool:
        """Tell whether there is nothing to send."""
        return not self.items and (not self.body or self.body.isspace())

    @property
    def dialogue(self) -> bool:
        """Tell whether each item is a message of its own."""
        return bool(self.items) and self.items[0].role is not None

    def texts(self) -> tuple[str, ...]:
        """Give the whole section: one text, or one for each message."""
        if self.items:
            return self.texts_of(self.items)
        return (f"{self.header}{self.body}{self.end}",)

    def texts_of(self, items: Sequence[Item]) -> tuple[str, ...]:
        """Give the section with these items only."""
        if self.dialogue:
            return tuple(item.text for item in items)
        return (self.header + "\n".join(line(item) for item in items) + self.end,)

    def with_fallback(self) -> tuple[str, ...]:
        """Give the section with its fallback."""
        return self.with_body(self.fallback)

    def with_body(self, body: str) -> tuple[str, ...]:
        """Give the section with another body."""
        return (f"{self.header}{body}{self.end}",)


def sections(components: Sequence[Component]) -> list[Section]:
    """Render components: clean texts, escape what others wrote, leave blank items out."""
    blocks = {component.block.id for component in components if component.block}
    names = "|".join(re.escape(name) for name in sorted(blocks | {MEMORY_BLOCK}))
    fence = re.compile(rf"<(?=\s*/?\s*(?:{names})\b)", re.IGNORECASE)
    return [_section(index, component, fence) for index, component in enumerate(components)]


def _section(index: int, component: Component, fence: re.Pattern[str]) -> Section:
    items = component.items and tuple(
        Item(text=text, priority=item.priority, role=item.role, group=item.group)
        for item in component.items
        if (text := _item_text(component, item, fence)).strip()
    )
    return Section(
        index,
        component,
        _header(component),
        _text(component, component.text, fence),
        component.fallback_text and _text(component, component.fallback_text, fence),
        items,
        "\n" if component.block else "",
    )


def line(item: Item) -> str:
    """Write an item as a list line; its further lines are indented, so it ends where it ends."""
    return "- " + "\n  ".join(item.text.splitlines())


def one_line(text: str) -> str:
    """Put a space for each run of blanks, control characters and marks of writing direction."""
    return _UNPRINTABLE.sub(" ", clean_text(text)).strip()


def _clean(text: str) -> str:
    """Clean a text, at once if it can only be clean."""
    return text if text.isascii() and "\0" not in text else clean_text(text)


def _header(component: Component) -> str:
    title = component.title
    if title and (not title.isprintable() or title.isspace() or "  " in title):
        title = one_line(title)
    if not title:
        return ""
    return f"{title}\n" if component.block else f"# {title.upper()}\n"


def _text(component: Component, text: str, fence: re.Pattern[str]) -> str:
    text = _clean(text)
    if component.trust is _TRUSTED:
        return text
    return _HEADER_LIKE.sub(r"\1\\", fence.sub("&lt;", text))


def _item_text(component: Component, item: Item, fence: re.Pattern[str]) -> str:
    """Clean an item; a line is indented under its dash, so only fences could be forged in it."""
    text = _clean(item.text)
    return text if component.trust is _TRUSTED else fence.sub("&lt;", text)
