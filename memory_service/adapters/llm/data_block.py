"""Texts of others inside a prompt: data between two tags, which no text can write."""

import json
from collections.abc import Mapping, Sequence


def data_block(tag: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Give the rows as JSON, one a line, between `<tag>` and `</tag>`.

    Every `<` inside is written as an escape of JSON, so that the block ends where we end it.
    """
    lines = [json.dumps(row, ensure_ascii=False).replace("<", "\\u003c") for row in rows]
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])
