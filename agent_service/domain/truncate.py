"""Cutting a text to fewer tokens where a reader would cut it."""

import re
from collections.abc import Iterator

import grapheme

from agent_service.domain.components import Truncate
from agent_service.domain.tokens import TokenCounter

MARKER = "\n[… truncated]"
"""Stands where something was cut out."""
MIN_USEFUL = 8
"""Tokens of body below which a cut text is not worth sending."""
_KEEP = 0.6
"""A nicer place to cut must keep this share of what would fit."""
_TRIES = 20
_CLOSERS = "[\"'”’)」』）】》]*"
_ENDS = (
    re.compile(r"(?=\n\n)"),
    re.compile(f"[。！？；]{_CLOSERS}|[.!?;]{_CLOSERS}(?=\\s)|(?=\n)"),
    re.compile(r"(?<=\S)(?=\s)"),
)
"""Where a paragraph, a sentence or line, and a word end, nicest first."""
_STARTS = (
    re.compile(r"(?<=\n\n)(?=\S)"),
    re.compile(r"(?<=[。！？；\n])|(?<=[.!?;]\s)"),
    re.compile(r"(?<=\s)(?=\S)"),
)


def cut(
    text: str, how: Truncate, *, before: str, behind: str, room: int, counter: TokenCounter
) -> str:
    """Give a part of text with a marker that takes at most room tokens with what stands around it.

    HEAD keeps an exact prefix, TAIL a suffix, MIDDLE both. Cuts lie between graphemes: at the end
    of a paragraph, else of a sentence or line, else of a word, if that keeps 60 % of what fits.
    Empty if less than MIN_USEFUL tokens would be left of the text, or nothing but blanks.
    """
    left = room - counter.count_many([f"{before}{MARKER}{behind}"])[0]
    for _ in range(_TRIES):
        body = _cut(text, how, left, counter) if left >= MIN_USEFUL else ""
        if not body:
            return ""
        over = counter.count_many([f"{before}{body}{behind}"])[0] - room
        if over <= 0:
            return body
        left -= over
    return ""


def _cut(text: str, how: Truncate, left: int, counter: TokenCounter) -> str:
    if how is Truncate.TAIL:
        tail = _suffix(text, left, counter)
        return f"{MARKER.lstrip()}\n{tail}" if tail.strip() else ""
    if how is Truncate.HEAD:
        head = _prefix(text, left, counter)
        return f"{head}{MARKER}" if head.strip() else ""
    head = _prefix(text, left // 2, counter)
    tail = _suffix(text[len(head) :], left - left // 2, counter)
    return f"{head}{MARKER}\n{tail}" if head.strip() and tail.strip() else ""


def _prefix(text: str, limit: int, counter: TokenCounter) -> str:
    """Give a prefix that is not all of text."""
    most = min(len(counter.truncate(text, limit)), len(text) - 1)
    least = max(1, int(most * _KEEP))
    for ends in _ENDS:
        places = [place for place in _places(ends, text, least, most) if place >= least]
        if places:
            most = places[-1]
            break
    return text[: grapheme.safe_split_index(text, most)]


def _suffix(text: str, limit: int, counter: TokenCounter) -> str:
    """Give a suffix that is not all of text."""
    least = max(1, len(text) - _suffix_length(text, limit, counter))
    most = len(text) - int((len(text) - least) * _KEEP)
    for starts in _STARTS:
        place = next(_places(starts, text, least, most), None)
        if place is not None:
            least = place
            break
    return text[_next_boundary(text, least) :]


def _places(pattern: re.Pattern[str], text: str, least: int, most: int) -> Iterator[int]:
    """Give the places least..most that end a match, in order."""
    for match in pattern.finditer(text, max(least - 1, 0), most + 1):
        if least <= match.end() <= most:
            yield match.end()


def _next_boundary(text: str, place: int) -> int:
    boundary: int = grapheme.safe_split_index(text, place)
    if boundary == place:
        return place
    return boundary + len(next(grapheme.graphemes(text[boundary:])))


def _suffix_length(text: str, limit: int, counter: TokenCounter) -> int:
    """Give how many characters at the end take about limit tokens, never more.

    Doubles, then closes in by interpolation, until within 2 % of limit: about 10 counts of texts
    not much longer than the suffix.
    """
    low, low_tokens = 0, 0
    high = min(len(text), max(limit, 1))
    high_tokens = counter.count_many([text[len(text) - high :]])[0]
    while high_tokens <= limit and high < len(text):
        low, low_tokens = high, high_tokens
        high = min(len(text), 2 * high)
        high_tokens = counter.count_many([text[len(text) - high :]])[0]
    if high_tokens <= limit:
        return high
    while high - low > 1 and low_tokens < limit - limit // 50:
        share = (limit - low_tokens) / (high_tokens - low_tokens)
        middle = min(max(low + int((high - low) * share), low + 1), high - 1)
        tokens = counter.count_many([text[len(text) - middle :]])[0]
        if tokens <= limit:
            low, low_tokens = middle, tokens
        else:
            high, high_tokens = middle, tokens
    return low
