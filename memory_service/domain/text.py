"""How the text of a memory is normalised, hashed, keyed, indexed and shown: one function each."""

import hashlib
import re
import unicodedata
from datetime import UTC, datetime
from itertools import islice

import grapheme

from memory_service.domain.model import Memory, MemoryStatus, MemoryType

_FORMAT_CHARACTERS = re.compile("[\u200b-\u200d\u2060\ufeff]")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_TITLE_CHARACTERS = 24
_TITLE_BYTES = 256


def normalize(text: str) -> str:
    """Drop zero-width characters, join words by one space, lower-case, compose (NFC).

    Idempotent, and strips no letter of any script.
    """
    words = _FORMAT_CHARACTERS.sub("", text).split()
    return unicodedata.normalize("NFC", " ".join(words).lower())


def content_hash(memory_type: MemoryType, content: str) -> str:
    """Give 64 hex digits: equal for contents of one type that are equal once normalised."""
    return _sha256(f"{memory_type}::{normalize(content)}")


def active_key(memory: Memory) -> str | None:
    """Give what must be unique among the active rows of one user, assistant, run and type.

    None for a row that is not active. The content's hash; of a verbatim turn the turn's place and
    words, because the same words said twice are two turns. The assistant's words have keys of
    their own: an echo must not stand in the way of what the user said.
    """
    if memory.status is not MemoryStatus.ACTIVE:
        return None
    if not memory.is_verbatim:
        return memory.content_hash
    said = _utc(memory.occur_time).isoformat(timespec="microseconds") if memory.occur_time else ""
    key = f"{memory.conversation_id}\0{memory.turn_id}\0{said}\0{memory.content}"
    return _sha256(f"{key}\0{memory.role}" if memory.supports_only else key)


def indexed_text(memory: Memory) -> str:
    """Give what is embedded and searched: `(8 May 2023) Speaker: content`, as far as known."""
    date = _date(memory.occur_time) if memory.occur_time else ""
    speaker = f"{memory.speaker}: " if memory.speaker else ""
    return f"{date}{speaker}{memory.content}"


def rendered_text(memory: Memory) -> str:
    """Give what tells two memories apart for a reader: the type's label and the words."""
    label = MemoryType.FACT if memory.memory_type is MemoryType.UNKNOWN else memory.memory_type
    return f"{label}::{memory.normalized_content or normalize(memory.title)}"


def without_nul(text: str) -> str:
    """Drop NUL, which databases truncate at; all other text is kept byte for byte."""
    return text.replace("\0", "")


def default_title(content: str) -> str:
    """Give the first 24 characters as a reader counts them, fewer if they exceed 256 bytes."""
    title = ""
    for character in islice(grapheme.graphemes(content), _TITLE_CHARACTERS):
        if len((title + character).encode()) > _TITLE_BYTES:
            break
        title += character
    return title


def _date(time: datetime) -> str:
    day = _utc(time)
    return f"({day.day} {_MONTHS[day.month - 1]} {day.year}) "


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
