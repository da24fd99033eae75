"""Which days a text names, and how they are written beside it."""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta

from memory_service.domain.dates import chinese, english
from memory_service.domain.dates.mention import Mention, Pattern

_PATTERNS: tuple[Pattern, ...] = (*english.PATTERNS, *chinese.PATTERNS)
_NOTES = 2
_REPEATED = re.compile(r"\b(?:every|each)\b|每")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")


def mentions(folded: str, today: date) -> tuple[Mention, ...]:
    """Give the dates that a folded text names, in its order, as meant on today.

    Where patterns overlap the more telling one counts. What comes back (every Monday, 每周一) has
    none.
    """
    if _REPEATED.search(folded):
        return ()
    found: list[Mention] = []
    for each in _PATTERNS:
        for match in each.words.finditer(folded):
            start, end = match.span()
            if any(start < other.end and other.start < end for other in found):
                continue
            if days := each.resolve(match, today):
                full = _YEAR.search(match[0]) is not None
                found.append(Mention(start=start, end=end, days=days, bare=each.bare, full=full))
    return tuple(sorted(found, key=lambda mention: mention.start))


def with_note(content: str, named: Sequence[Mention]) -> str:
    """Write the days behind the words: `I start tomorrow (2024-03-11)`, full-width in Chinese."""
    unsaid = (str(mention.days) for mention in named if not mention.full)
    days = list(dict.fromkeys(unsaid))[:_NOTES]
    if not days:
        return content
    if re.search("[\u3400-\u9fff]", content):
        return f"{content}（{'、'.join(days)}）"
    return f"{content} ({', '.join(days)})"


def end_of_day(day: date, said: datetime) -> datetime:
    """Give the first moment after day in the zone of said."""
    return datetime.combine(day + timedelta(days=1), time(), tzinfo=said.tzinfo)
