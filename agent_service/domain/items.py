"""Choosing which whole items of a component are sent when not all fit."""

from collections.abc import Iterable, Sequence
from math import ceil

from agent_service.domain.components import Item
from agent_service.domain.sections import Section, line
from agent_service.domain.tokens import TokenCounter


def keep_lines(section: Section, *, room: int, counter: TokenCounter) -> tuple[Item, ...]:
    """Give the lines that fit under their header, by priority; a smaller one may fill a gap.

    Lines of a group go together, in the place of the best of them.
    """
    counts = counter.count_many([f"{line(item)}\n" for item in section.items])
    last_feed = 0 if section.end else counter.count_many(["\n"])[0]
    left = room - counter.count_many([section.header])[0] + last_feed
    items = section.items
    kept: list[list[int]] = []
    for unit in sorted(
        _units(items), key=lambda unit: -max(items[place].priority for place in unit)
    ):
        tokens = sum(counts[place] for place in unit)
        if tokens <= left:
            kept.append(unit)
            left -= tokens
    while kept and counter.count_many(section.texts_of(_pick(items, kept)))[0] > room:
        kept.pop()
    return _pick(items, kept)


def drop_oldest(items: Sequence[Item], costs: Sequence[int], *, excess: int, step: int) -> int:
    """Give the index of the first message that stays when the oldest go, groups as a whole.

    Messages go until ceil(excess / step) * step tokens are gone; if that would take all of them,
    until excess is gone. With a step of 0 until excess is gone.
    """
    starts = _starts(items)
    for goal in (ceil(excess / step) * step if step else excess, excess):
        gone = 0
        for first, cost in enumerate(costs):
            if gone >= goal and starts[first]:
                return first
            gone += cost
    return len(items)


def _starts(items: Sequence[Item]) -> list[bool]:
    """Tell for each message whether a dialogue may begin with it: no group is split before it."""
    last = {item.group: index for index, item in enumerate(items) if item.group}
    bound = 0
    starts = []
    for index, item in enumerate(items):
        starts.append(index >= bound)
        bound = max(bound, last.get(item.group, index) + 1)
    return starts


def _units(items: Sequence[Item]) -> Iterable[list[int]]:
    """Give the places of items that go together, in order of their first."""
    units: dict[str | int, list[int]] = {}
    for index, item in enumerate(items):
        units.setdefault(item.group or index, []).append(index)
    return units.values()


def _pick(items: Sequence[Item], units: Iterable[Sequence[int]]) -> tuple[Item, ...]:
    return tuple(items[place] for place in sorted(place for unit in units for place in unit))
