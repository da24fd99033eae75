"""What a verbatim turn is to the turns around it: its neighbours, its speaker, whether it asks."""

import re
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.columns import grown
from memory_service.domain.model import Memory

LONGEST_PAUSE = timedelta(seconds=3_600)
"""Turns of a conversation that are further apart are no neighbours (RECALL 1.4)."""

_CLOSING = " \t\r\n\u3000\"'”’»)]）】」』》"
_SPEAKER = re.compile(r"\s*(?:[(（][^)）]*[)）]\s*)?([^:：\n]{1,31})[:：]")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def asks(text: str) -> bool:
    """Tell whether a turn ends with a question mark, but for quotes, brackets and one [note]."""
    words = text.rstrip()
    note = words.rfind("[")
    if note >= 0 and words.find("]", note) == len(words) - 1:
        words = words[:note]
    return words.rstrip(_CLOSING).endswith(("?", "？"))


def speaker_of(memory: Memory) -> str:
    """Give who said a turn, case folded: the stored speaker, else what stands before a colon.

    Not so where it is known whether the user or the assistant spoke: that is no transcript.
    """
    found = None if memory.speaker or memory.role else _SPEAKER.match(memory.content)
    return (found.group(1) if found else memory.speaker).strip().casefold()


def is_unspaced(text: str) -> bool:
    """Tell whether a text has characters of a script that puts no spaces between words."""
    return _UNSPACED.search(text) is not None


def is_named(speaker: str, text: str) -> bool:
    """Tell whether a text, case folded, names a speaker: as a whole word, in CJK anywhere."""
    if speaker not in text:
        return False
    if is_unspaced(speaker):
        return True
    return re.search(rf"(?<!\w){re.escape(speaker)}(?!\w)", text) is not None


class _Place(NamedTuple):
    """Where a turn stands in its conversation."""

    time: datetime
    memory_id: str
    slot: int


@dataclass(slots=True)
class _Speaker:
    number: int
    turns: int = 0


class Turns:
    """Links and speakers of one user's verbatim turns, by slot; slot 0 stands for nobody.

    Only turns with a conversation and a time have neighbours.
    """

    def __init__(self) -> None:
        self.previous: NDArray[np.intp] = np.zeros(1, np.intp)
        self.following: NDArray[np.intp] = np.zeros(1, np.intp)
        self.asks: NDArray[np.bool_] = np.zeros(1, np.bool_)
        self._speaker: NDArray[np.intp] = np.zeros(1, np.intp)
        self._speakers: dict[str, _Speaker] = {}
        self._speakers_met = 0
        self._conversations: dict[str, list[_Place]] = {}

    def reserve(self, size: int) -> None:
        """Make room for slots below size."""
        self.previous = grown(self.previous, size)
        self.following = grown(self.following, size)
        self.asks = grown(self.asks, size)
        self._speaker = grown(self._speaker, size)

    def add(self, slot: int, memory: Memory) -> None:
        """Link a memory if it is a turn."""
        if not memory.is_verbatim:
            return
        self.asks[slot] = asks(memory.content)
        self._meet(slot, speaker_of(memory))
        place = _place(slot, memory)
        if place is not None:
            turns = self._conversations.setdefault(memory.conversation_id, [])
            insort(turns, place)
            at = bisect_left(turns, place)
            self._link(turns, at)
            self._link(turns, at + 1)

    def remove(self, slot: int, memory: Memory) -> None:
        """Take a memory out that was added as it is now; its neighbours become each other's."""
        if not memory.is_verbatim:
            return
        self.asks[slot] = False
        self._forget(slot, speaker_of(memory))
        place = _place(slot, memory)
        if place is not None:
            turns = self._conversations[memory.conversation_id]
            at = bisect_left(turns, place)
            del turns[at]
            self.previous[slot] = self.following[slot] = 0
            self._link(turns, at)
            if not turns:
                del self._conversations[memory.conversation_id]

    def named(self, text: str, size: int) -> NDArray[np.bool_] | None:
        """Tell which slots below size were said by the one speaker that a text names.

        None if it names none or several, or if the store knows fewer than two.
        """
        if len(self._speakers) < 2:  # noqa: PLR2004 — with one speaker a name tells nothing
            return None
        folded = text.casefold()
        named = [one.number for name, one in self._speakers.items() if is_named(name, folded)]
        return self._speaker[:size] == named[0] if len(named) == 1 else None

    def _link(self, turns: Sequence[_Place], at: int) -> None:
        """Link the turn at a position with the one before it, or part them."""
        before = turns[at - 1] if at > 0 else None
        after = turns[at] if at < len(turns) else None
        near = before and after and after.time - before.time <= LONGEST_PAUSE
        if before:
            self.following[before.slot] = after.slot if near and after else 0
        if after:
            self.previous[after.slot] = before.slot if near and before else 0

    def _meet(self, slot: int, name: str) -> None:
        if not name:
            return
        if name not in self._speakers:
            self._speakers_met += 1
            self._speakers[name] = _Speaker(self._speakers_met)
        speaker = self._speakers[name]
        speaker.turns += 1
        self._speaker[slot] = speaker.number

    def _forget(self, slot: int, name: str) -> None:
        if not name:
            return
        speaker = self._speakers[name]
        speaker.turns -= 1
        self._speaker[slot] = 0
        if not speaker.turns:
            del self._speakers[name]


def _place(slot: int, memory: Memory) -> _Place | None:
    if not memory.conversation_id or memory.occur_time is None:
        return None
    return _Place(memory.occur_time, memory.memory_id, slot)
