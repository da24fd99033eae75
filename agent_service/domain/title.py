"""What a conversation is called until somebody names it."""

import grapheme


def title_of(message: str, *, characters: int) -> str:
    """Give the first line of the message, at most that many characters, whole ones."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    one_line = " ".join(line.split())
    if grapheme.length(one_line) <= characters:
        return one_line
    return str(grapheme.slice(one_line, 0, characters - 1)).rstrip() + "…"
