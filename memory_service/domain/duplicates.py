"""Which of a user's memories say the same, and which of those stays (SPEC_MEMORY 7)."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memory_service.domain.model import Memory
from memory_service.domain.text import rendered_text
from memory_service.domain.write import refreshed

MUCH_NEWER = timedelta(hours=24)
_CLOSING = " .。!！"
"""A statement is the same with or without these at its end; with a question mark it is not."""

Reach = tuple[str, str]
"""assistant_id and run_id: who recalls a memory."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a memory says, to whom, and what speaks for keeping it; small, so that many fit."""

    memory_id: str
    words: bytes
    reach: Reach
    confidence: float
    importance: float
    update_time: datetime


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A memory that says what another one says."""

    memory_id: str
    kept: str
    """The memory_id of the one that stays."""


def said(memory: Memory) -> Said | None:
    """Tell what a memory says; None for a verbatim turn: the same words said twice are two turns.

    Words are the same if the type's label and the normalized content are, but for closing full
    stops, and if they are as sensitive: the one that stays is shown where the other one was.
    """
    if memory.is_verbatim:
        return None
    words = f"{memory.sensitivity_level} {rendered_text(memory).rstrip(_CLOSING)}"
    return Said(
        memory_id=memory.memory_id,
        words=hashlib.sha256(words.encode()).digest(),
        reach=(memory.assistant_id, memory.run_id),
        confidence=memory.confidence,
        importance=memory.importance,
        update_time=memory.update_time,
    )


def duplicates(sayings: Iterable[Said]) -> list[Duplicate]:
    """Give the memories that are not needed, by memory_id; each is covered by the one kept.

    A memory for all assistants and runs covers one for some of them, never the other way round. Of
    those with one reach one stays: from the oldest on, the newer if it is more than 24 hours newer,
    else the surer, the more important, the newer, the one with the higher id.
    """
    alike: defaultdict[bytes, list[Said]] = defaultdict(list)
    for saying in sayings:
        alike[saying.words].append(saying)
    found = [duplicate for group in alike.values() for duplicate in _of_group(group)]
    return sorted(found, key=lambda duplicate: duplicate.memory_id)


def covers(one: Reach, other: Reach) -> bool:
    """Tell whether whoever recalls what reaches other recalls what reaches one."""
    return all(wide in {"", narrow} for wide, narrow in zip(one, other, strict=True))


def united(kept: Memory, duplicate: Memory) -> Memory:
    """Give the memory that stays with what the other one had more of; kept itself if nothing.

    As when it is said again (domain.write.refreshed), but it becomes no newer.
    """
    after = replace(refreshed(kept, duplicate), update_time=kept.update_time, version=kept.version)
    return kept if after == kept else replace(after, version=kept.version + 1)


def _of_group(group: Sequence[Said]) -> Iterable[Duplicate]:
    if len(group) == 1:
        return
    best: dict[Reach, Said] = {}
    for saying in sorted(group, key=lambda one: (one.update_time, one.memory_id)):
        best[saying.reach] = _better(best.get(saying.reach, saying), saying)
    for saying in group:
        kept = _widest(best, saying.reach)
        if kept.memory_id != saying.memory_id:
            yield Duplicate(saying.memory_id, kept.memory_id)


def _widest(best: Mapping[Reach, Said], reach: Reach) -> Said:
    """Give the best of the widest reach that covers this one; empty names come first."""
    return best[min(wide for wide in best if covers(wide, reach))]


def _better(older: Said, newer: Said) -> Said:
    if newer.update_time - older.update_time > MUCH_NEWER:
        return newer
    return max(older, newer, key=_strength)


def _strength(saying: Said) -> tuple[float, float, datetime, str]:
    return (saying.confidence, saying.importance, saying.update_time, saying.memory_id)
