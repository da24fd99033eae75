"""What a rule is, and what a language gives to the reader."""

import re
from dataclasses import dataclass

from memory_service.domain.model import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Words that make a statement of a type; they are compared with its folded beginning.

    standing: an instruction to the assistant, which may concern the task at hand only.
    explicit: said as something to hold to from now on. dated: counts only with a date to come
    in it. wished: counts only if the user asked to remember it.
    as_written: compared with the text as it was written, where capitals tell names.
    """

    words: re.Pattern[str]
    memory_type: MemoryType
    confidence: float
    standing: bool = False
    explicit: bool = False
    dated: bool = False
    wished: bool = False
    as_written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The patterns of a language, all compared with folded text.

    At the beginning of a sentence: filler says nothing; remember asks to keep whatever follows;
    note does so if it is about the user; remind asks to be reminded; task asks for work; on_text
    asks for work on a text that follows; pretend begins what is not meant; forget asks not
    to keep what is said.
    Anywhere in it: doubt, scoped (concerns the task at hand only), question; corrects, which takes
    back what was said before. At its end: request, a question or a wish that a statement leads to;
    keep_that, which asks to keep what was said. joint lies between two statements about the user.
    """

    filler: re.Pattern[str]
    remember: re.Pattern[str]
    note: re.Pattern[str]
    remind: re.Pattern[str]
    task: re.Pattern[str]
    on_text: re.Pattern[str]
    pretend: re.Pattern[str]
    question: re.Pattern[str]
    forget: re.Pattern[str]
    corrects: re.Pattern[str]
    doubt: re.Pattern[str]
    scoped: re.Pattern[str]
    request: re.Pattern[str]
    keep_that: re.Pattern[str]
    joint: re.Pattern[str]
    rules: tuple[Rule, ...]


def rule(  # noqa: PLR0913 - each is a property of a rule
    memory_type: MemoryType,
    confidence: float,
    *words: str,
    standing: bool = False,
    explicit: bool = False,
    dated: bool = False,
    wished: bool = False,
    as_written: bool = False,
) -> Rule:
    """Make a rule of alternatives."""
    return Rule(
        words=re.compile("|".join(words)),
        memory_type=memory_type,
        confidence=confidence,
        standing=standing,
        explicit=explicit,
        dated=dated,
        wished=wished,
        as_written=as_written,
    )
