"""Recalled memories as components of a prompt: one data block that its text cannot leave."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from agent_service.domain.components import INT32_MAX, Block, Component, Item, Truncate, Trust, Zone
from agent_service.domain.model import MemoryType, RecalledMemory, Role
from agent_service.domain.sections import MEMORY_BLOCK, one_line
from agent_service.domain.text import clean_text


class RenderMode(StrEnum):
    """How memories are written: in a section for each type, or in one flat list."""

    TYPED_V2 = "typed_v2"
    FLAT = "flat"


class Language(StrEnum):
    """The languages that we write headings in."""

    ZH = "zh"
    EN = "en"


INTRO = {
    Language.ZH: "以下是与当前对话相关的用户记忆，仅在确实有帮助时参考，不要机械复述。",
    Language.EN: (
        "These are memories of the user related to this conversation; "
        "use them only where they really help, and do not recite them."
    ),
}
RELATED_MEMORIES = {
    Language.ZH: "相关记忆（仅在确有帮助时参考，不要机械复述）：",
    Language.EN: "Related memories (use only where they really help, do not recite them):",
}
"""What the execute stage writes above the block."""

_SECTION = {
    MemoryType.CONSTRAINT: "constraints",
    MemoryType.PREFERENCE: "preferences",
    MemoryType.FACT: "facts",
    MemoryType.UNKNOWN: "facts",
    MemoryType.TODO_HINT: "todos",
}
_HEADINGS = {
    Language.ZH: {
        "constraints": "【必守约束】",
        "preferences": "【用户偏好】",
        "facts": "【当前话题相关事实】",
        "todos": "【近期待办】",
    },
    Language.EN: {
        "constraints": "【Must follow】",
        "preferences": "【Preferences】",
        "facts": "【Relevant facts】",
        "todos": "【Upcoming to-dos】",
    },
}
_LABELS = {
    Language.ZH: {
        MemoryType.CONSTRAINT: "约束",
        MemoryType.PREFERENCE: "偏好",
        MemoryType.FACT: "事实",
        MemoryType.TODO_HINT: "待办线索",
        MemoryType.UNKNOWN: "记忆",
    },
    Language.EN: {
        MemoryType.CONSTRAINT: "constraint",
        MemoryType.PREFERENCE: "preference",
        MemoryType.FACT: "fact",
        MemoryType.TODO_HINT: "to-do",
        MemoryType.UNKNOWN: "memory",
    },
}
MEMORY_PRIORITY: Mapping[str, int] = {
    "constraints": 950,
    "preferences": 800,
    "facts": 700,
    "todos": 600,
}
"""By kind; the flat list, of kind memories, has that of constraints."""
MEMORY_MIN: Mapping[str, int] = {"constraints": INT32_MAX, "facts": 512, "todos": 128}
"""Tokens held back by kind, so that long preferences leave room for what was asked about.

Constraints hold all that they need: none is left out for another type.
"""

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W\d_\u3400-\u9fff\uf900-\ufaff]+")


def language(locale: str, *texts: str) -> Language:
    """Give the language to write in: that of the locale, else of the first text that tells.

    A text is Chinese if it has at least as many Han characters as other words and no Japanese or
    Korean letters. A text without words tells nothing; if none tells, it is English.
    """
    if locale.strip():
        return Language.ZH if re.match(r"\s*zh(?![a-z])", locale.lower()) else Language.EN
    for text in texts:
        han, words = len(_HAN.findall(text)), len(_WORD.findall(text))
        if han or words:
            chinese = han >= words and not _KANA_HANGUL.search(text)
            return Language.ZH if chinese else Language.EN
    return Language.EN


def render_memory(
    recall_items: Sequence[RecalledMemory],
    *,
    mode: RenderMode,
    locale: str,
    message: str,
    minimum: Mapping[str, int] = MEMORY_MIN,
) -> list[Component]:
    """Give the block memory_context: constraints, preferences, facts and todos, or one list.

    Components without items are left out. Each memory is whole or absent: of each type the first
    are kept longest, in the flat list constraints, then preferences, facts, to-dos. Text is the
    content, or the title if that is blank; the same text of a type stands once. minimum is held
    back by kind; what constraints ask for also holds for the flat list.
    """
    listed = [(item.memory_type, text) for item in recall_items if (text := _text(item))]
    speak = language(locale, message, *(text for _, text in listed))
    block = Block(id=MEMORY_BLOCK, intro=INTRO[speak])
    if mode is RenderMode.FLAT:
        return _flat(listed, speak, block, minimum)
    return _typed(listed, speak, block, minimum)


def as_related(memory: Sequence[Component]) -> list[Component]:
    """Give the block as the execute stage takes it over: under RELATED_MEMORIES, and no other."""
    headings = {INTRO[speak]: RELATED_MEMORIES[speak] for speak in Language}
    return [
        replace(part, block=replace(block, intro=f"{headings[block.intro]}\n{block.intro}"))
        for part in memory
        if (block := part.block) and block.id == MEMORY_BLOCK
    ]


def _typed(
    listed: Sequence[tuple[MemoryType, str]],
    speak: Language,
    block: Block,
    minimum: Mapping[str, int],
) -> list[Component]:
    texts: dict[str, dict[str, None]] = {kind: {} for kind in MEMORY_PRIORITY}
    for memory_type, text in listed:
        texts[_SECTION[memory_type]][text] = None
    return [
        _component(
            kind,
            [Item(text=text) for text in texts[kind]],
            block,
            title=_HEADINGS[speak][kind],
            order=order,
            min_tokens=minimum.get(kind, 0),
        )
        for order, kind in enumerate(MEMORY_PRIORITY)
        if texts[kind]
    ]


def _flat(
    listed: Sequence[tuple[MemoryType, str]],
    speak: Language,
    block: Block,
    minimum: Mapping[str, int],
) -> list[Component]:
    lines = {
        f"[{_LABELS[speak][memory_type]}] {text}": MEMORY_PRIORITY[_SECTION[memory_type]]
        for memory_type, text in listed
    }
    items = [Item(text=text, priority=priority) for text, priority in lines.items()]
    return (
        [_component("memories", items, block, min_tokens=minimum.get("constraints", 0))]
        if items
        else []
    )


def _component(
    kind: str,
    items: Sequence[Item],
    block: Block,
    *,
    title: str = "",
    order: int = 0,
    min_tokens: int = 0,
) -> Component:
    return Component(
        id=kind,
        kind=kind,
        title=title,
        items=tuple(items),
        priority=MEMORY_PRIORITY.get(kind, MEMORY_PRIORITY["constraints"]),
        truncate=Truncate.ITEMS,
        min_tokens=min_tokens,
        zone=Zone.VOLATILE,
        order=order,
        trust=Trust.UNTRUSTED,
        role=Role.SYSTEM,
        block=block,
    )


def _text(item: RecalledMemory) -> str:
    return clean_text(item.content).strip() or one_line(item.title)
