"""Where sections stand, and what messages they become."""

from collections.abc import Iterable
from typing import NamedTuple

from agent_service.domain.components import Block, Zone
from agent_service.domain.errors import InvalidComponent
from agent_service.domain.sections import Section

_Key = tuple[int, int, int, int]
_RANK = {zone: rank for rank, zone in enumerate(Zone)}


class Place(NamedTuple):
    """A section and the message that it is part of: places of one message stand side by side.

    Messages are fixed before anything is dropped, so that a dropped section never changes the
    borders of others.
    """

    section: Section
    message: int


def layout(sections: Iterable[Section]) -> list[Place]:
    """Order sections by zone, order, -priority, position; a block stands where its first would.

    Neighbours of the same zone and role share a message; a message of a dialogue shares none.
    """
    places = []
    message = -1
    zone, role = None, None
    for section in _ordered(sections):
        component = section.component
        if section.dialogue:
            message += 1
            zone = None
        elif zone is not component.zone or role is not component.role:
            message += 1
            zone, role = component.zone, component.role
        places.append(Place(section, message))
    return places


def _ordered(sections: Iterable[Section]) -> list[Section]:
    ordered = sorted(sections, key=_key)
    anchors: dict[str, _Key] = {}
    for section in ordered:
        if section.component.block:
            anchors.setdefault(section.component.block.id, _key(section))
    if anchors:
        ordered.sort(key=lambda section: _anchor(section, anchors))
    return ordered


def _key(section: Section) -> _Key:
    component = section.component
    return (_RANK[component.zone], component.order, -component.priority, section.position)


def _anchor(section: Section, anchors: dict[str, _Key]) -> _Key:
    block = section.component.block
    return anchors[block.id] if block else _key(section)


def check_blocks(sections: Iterable[Section]) -> None:
    """Refuse a block whose components disagree about it. Raises InvalidComponent."""
    seen: dict[str, tuple[Block, Zone, str]] = {}
    for section in sections:
        component = section.component
        if component.block:
            mine = (component.block, component.zone, component.role)
            if seen.setdefault(component.block.id, mine) != mine:
                raise InvalidComponent(component.id, "one intro, zone and role for a block")


def opening(block: Block) -> str:
    """Give what stands before the sections of a block."""
    intro = f"{block.intro}\n" if block.intro else ""
    return f'{intro}<{block.id} trust="untrusted">\n'


def closing(block: Block) -> str:
    """Give what stands behind the sections of a block."""
    return f"</{block.id}>"
