"""How large a memory is in a prompt and in a response, estimated without a tokenizer or codec."""

import json
from math import ceil

from memory_service.domain.recall import Ranked

_TOKENS = (0.25, 0.5, 1.0, 2.0)
"""Tokens per character of 1, 2, 3 and 4 bytes of UTF-8."""
_FIXED_BYTES = 1_000
"""Numbers, times, hash, keys and the parts that explain adds: about 700 at most."""
_STRUCT_FACTOR = 8
"""A number in a list is two characters of JSON and up to 15 bytes of a Struct."""


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text from its characters; never 0 unless it is empty."""
    size, long = len(text.encode()), len(text.encode("utf-16-le")) // 2 - len(text)
    short = len(text.encode("ascii", "ignore"))
    between = len(text) - short - long
    three = size - short - 4 * long - 2 * between
    counts = (short, between - three, three, long)
    return ceil(sum(worth * count for worth, count in zip(_TOKENS, counts, strict=True)))


def estimated_tokens(row: Ranked) -> int:
    """Estimate the tokens of what a reader sees of a row."""
    memory = row.candidate.memory
    return text_tokens(memory.content or memory.title)


def estimated_bytes(row: Ranked) -> int:
    """Give no less than the bytes of a row in a RetrieveResponse."""
    memory = row.candidate.memory
    words = (memory.content, memory.title, memory.speaker, *memory.event_ids)
    ids = (memory.memory_id, memory.user_id, memory.conversation_id, memory.assistant_id)
    more = (memory.run_id, memory.turn_id, memory.superseded_by)
    texts = sum(len(text.encode()) + 4 for text in (*words, *ids, *more))
    metadata = len(json.dumps(dict(memory.metadata), ensure_ascii=False).encode())
    return texts + _FIXED_BYTES + _STRUCT_FACTOR * metadata
