"""A date as somebody named it, and the patterns that find such."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from memory_service.domain.dates.calendar import Span

Resolve = Callable[[re.Match[str], date], Span | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Days that a text names, and where.

    bare: only a weekday or a date without a year, which a plan means as the next one, and which in
    any other statement may come back every week or year. full: with its year, so there is nothing
    to explain.
    """

    start: int
    end: int
    days: Span
    bare: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """Words for a date, and what day they mean if said on a day."""

    words: re.Pattern[str]
    resolve: Resolve
    bare: bool = False


def pattern(words: str, resolve: Resolve, *, bare: bool = False) -> Pattern:
    """Compile words, which are compared with folded text."""
    return Pattern(re.compile(words), resolve, bare)
