"""The rules that ids, names and pages keep in the requests of every service."""

import unicodedata

MAX_ID_BYTES = 128
DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200


def id_problems(value: str) -> list[str]:
    """Say what keeps a text from being an id or a name; an empty one has no problem here.

    At most 128 bytes of UTF-8 without control characters (Unicode Cc: C0, DEL, C1). All else is
    ordinary: quotes, wildcards, emoji, line separators U+2028 and U+2029.
    """
    problems = []
    if len(value.encode()) > MAX_ID_BYTES:
        problems.append(f"at most {MAX_ID_BYTES} bytes")
    if any(unicodedata.category(character) == "Cc" for character in value):
        problems.append("no control characters")
    return problems


def items_of_page(asked: int) -> int:
    """Give how many items a page has at most: 50 where 0 are asked for, and never above 200."""
    return min(asked or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
