"""Filter expressions in Milvus's language, from ids that passed validation.

A JSON string in plain UTF-8 is a literal that the parsers of milvus-lite 3.2 and of the server
(2.3.5) both read back to the same bytes, whatever it holds but control characters, which are
refused here once more. Escapes for non-ASCII characters are what they do not read.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from memory_service.domain.model import MemoryType
from memory_service.ports import IndexFilter

ID_BATCH = 200
"""Ids in one `in [...]`: at most 26 kB of expression."""

NEVER = 2**63 - 1
"""Stored as the expire_time of a memory that does not expire."""

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_HIGHEST_SENSITIVITY = 2


def microseconds(time: datetime) -> int:
    """Give an aware time as microseconds since 1970, exactly."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def literal(value: str) -> str:
    """Give a string literal. Raises ValueError for control characters and lone surrogates."""
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in value):
        message = "an id with control characters or surrogates is not an id"
        raise ValueError(message)
    return json.dumps(value, ensure_ascii=False)


def of_user(user_id: str) -> str:
    """Give the clause for one user's rows. An empty user is an error, never everybody."""
    if not user_id:
        message = "user_id must not be empty"
        raise ValueError(message)
    return f"user_id == {literal(user_id)}"


def searched(wanted: IndexFilter) -> str:
    """Give the filter of a search: the user, not expired, and the clauses that restrict."""
    clauses = [of_user(wanted.user_id), f"expire_time > {microseconds(wanted.now)}"]
    if wanted.assistant_id:
        clauses.append(f'assistant_id in ["", {literal(wanted.assistant_id)}]')
    if wanted.run_id:
        clauses.append(f'run_id in ["", {literal(wanted.run_id)}]')
    if wanted.explicit_only:
        clauses.append("is_explicit == true")
    if wanted.max_sensitivity < _HIGHEST_SENSITIVITY:
        clauses.append(f"sensitivity_level <= {wanted.max_sensitivity}")
    if types := _types(wanted.memory_types):
        clauses.append(f"memory_type in {_list(types)}")
    return " and ".join(clauses)


def of_memories(memory_ids: Sequence[str]) -> Iterator[str]:
    """Give clauses that together name all the ids, none when there are none."""
    for start in range(0, len(memory_ids), ID_BATCH):
        yield f"memory_id in {_list(memory_ids[start : start + ID_BATCH])}"


def _types(wanted: frozenset[MemoryType]) -> list[str]:
    """Give the types to look for, sorted; unknown ones count as facts. None: all."""
    found = wanted | ({MemoryType.UNKNOWN} if MemoryType.FACT in wanted else frozenset())
    return [] if found >= frozenset(MemoryType) else sorted(found)


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(literal, values))}]"
