"""From a sentence to the statement in it: without greetings, and without `remember that`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

from memory_service.domain.rules import chinese, english
from memory_service.domain.rules.rule import Language
from memory_service.domain.rules.sentences import Sentence

LANGUAGES: tuple[Language, ...] = (english.LANGUAGE, chinese.LANGUAGE)

_AROUND = " ,;:-~，；：、–—"
_POLITE = re.compile(r"(?:can|could|would|will) you |(?:请|麻烦)?(?:你|您)?(?:可以|能不能|能)")
_UNSPACED = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_SCRAP = 3
_ASKS = "吗么嘛 "


class Wish(Enum):
    """What the user asked to do with a statement, if anything."""

    NONE = auto()
    REMEMBER = auto()
    NOTE = auto()
    REMIND = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a sentence says, as written and folded: same length, place for place."""

    text: str
    folded: str
    wish: Wish = Wish.NONE
    corrects: bool = False
    """The user takes back what was said before: `actually`, `no longer`, 不再."""


def statement_of(sentence: Sentence) -> Statement | None:
    """Give the statement of a sentence; None for a question, a task, a doubt, a passing matter.

    What the user asks to remember is taken as it stands: it may be doubtful or passing.
    """
    folded = sentence.folded
    begin = _skip(folded, 0)
    wish, start = _wish(folded, begin)
    end = _end(folded, start, lambda language: language.keep_that)
    if end < len(folded):
        wish = Wish.REMEMBER
    else:
        end = _end(folded, start, lambda language: language.request)
    if wish is not Wish.NONE and _POLITE.match(folded, begin):
        end = len(folded[:end].rstrip(_ASKS))
    elif sentence.end == "?" and end == len(folded):
        return None
    said = folded[start:end]
    if wish is Wish.NONE and (_is_work(said) or _is_passing(said)):
        return None
    if not said.strip(_AROUND) or _found(said, lambda language: language.question):
        return None
    corrects = _found(folded, lambda language: language.corrects)
    whole = Statement(text=sentence.text, folded=folded, wish=wish, corrects=corrects)
    return _part(whole, start, end)


def splits(statement: Statement) -> Iterator[tuple[Statement, Statement]]:
    """Give each way to take a statement in two where one about the user may begin, in order.

    `I live in Oslo and I like tea` gives both halves; each has the wish of the whole.
    """
    joints = (found.span() for each in LANGUAGES for found in each.joint.finditer(statement.folded))
    for end, start in sorted(joints):
        yield (
            _part(statement, 0, end),
            _part(statement, start, len(statement.folded)),
        )


def _part(statement: Statement, start: int, end: int) -> Statement:
    said = statement.folded[start:end]
    left = start + len(said) - len(said.lstrip(_AROUND))
    right = max(left, start + len(said.rstrip(_AROUND)))
    return replace(statement, text=statement.text[left:right], folded=statement.folded[left:right])


def is_task(sentence: Sentence) -> bool:
    """Tell whether a sentence asks for work."""
    start = _skip(sentence.folded, 0)
    return _wish(sentence.folded, start)[0] is Wish.NONE and _is_work(sentence.folded[start:])


def is_task_on_text(sentence: Sentence) -> bool:
    """Tell whether it asks for work on a text that comes with it."""
    said = sentence.folded[_skip(sentence.folded, 0) :]
    return is_task(sentence) and any(language.on_text.match(said) for language in LANGUAGES)


def is_question(sentence: Sentence) -> bool:
    """Tell whether a sentence asks."""
    said = sentence.folded[_skip(sentence.folded, 0) :]
    return sentence.end == "?" or _found(said, lambda language: language.question)


def pretends(sentence: Sentence) -> bool:
    """Tell whether a sentence begins a play or a thought in which nothing is meant."""
    start = _skip(sentence.folded, 0)
    return any(language.pretend.match(sentence.folded, start) for language in LANGUAGES)


def forgets(sentence: Sentence) -> bool:
    """Tell whether a sentence asks not to keep what is said with it, or what was said before."""
    start = _skip(sentence.folded, 0)
    return any(language.forget.match(sentence.folded, start) for language in LANGUAGES)


def says_enough(statement: Statement) -> bool:
    """Tell whether words that no rule knows are more than a scrap: two words, or four signs."""
    return len(statement.folded.split()) > 1 or len(_UNSPACED.findall(statement.folded)) > _SCRAP


def _skip(folded: str, start: int) -> int:
    """Give the place after the words that say nothing."""
    for language in LANGUAGES:
        if found := language.filler.match(folded, start):
            start = found.end()
    return start


def _wish(folded: str, start: int) -> tuple[Wish, int]:
    """Give what is asked for at a place, and the place of what it is asked of."""
    for language in LANGUAGES:
        for wish, words in (
            (Wish.REMEMBER, language.remember),
            (Wish.NOTE, language.note),
            (Wish.REMIND, language.remind),
        ):
            if found := words.match(folded, start):
                return wish, _skip(folded, found.end())
    return Wish.NONE, start


def _end(folded: str, start: int, words: Callable[[Language], re.Pattern[str]]) -> int:
    """Give where the words at the end begin, else the end."""
    found = (words(language).search(folded, start) for language in LANGUAGES)
    return min((match.start() for match in found if match), default=len(folded))


def _is_work(said: str) -> bool:
    return any(language.task.match(said) for language in LANGUAGES)


def _is_passing(said: str) -> bool:
    return _found(said, lambda language: language.doubt) or _found(
        said, lambda language: language.scoped
    )


def _found(said: str, words: Callable[[Language], re.Pattern[str]]) -> bool:
    return any(words(language).search(said) for language in LANGUAGES)
