"""The sentences of a message that are the user's own words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_service.domain.fold import fold

PASTED_FROM = 1_000
"""Characters of a message beyond which it counts as pasted text."""
LONGEST = 500
"""Characters of a sentence beyond which it is not read."""

_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_NOT_OWN = re.compile(
    r"\s{0,8}(?:[>*+•·#|<{}\[\]=]|-[ -]|\(?[0-9]{1,2}[.):]\s|\(?[a-z]\)\s|//|\$ )| {4}|\t"
)
_END = re.compile(r"[.!?。！？…]+(?=[\s\"”」』)）]|$|[^\x00-\x7f])|[。！？]+")
_QUOTE = re.compile(r"[\"“”「」『』«»]")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|mr|mrs|ms|dr|st|vs|no|approx|[a-z])$")
_LETTER = re.compile(
    r"\s{0,8}(?:(?:from|to|cc|subject|date|sent|发件人|收件人|主题|日期)\s?[:：]"
    r"|dear |尊敬的|亲爱的)",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(r":\s{0,8}$")
_INTRODUCES_ME = re.compile(r"about me|remember|关于我|我的情况|自我介绍|记住|记一下")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence as written and as rules compare it: same length, place for place.

    end is the punctuation that closes it, folded; "" where a line just ends.
    """

    text: str
    folded: str
    end: str = ""


def own_sentences(message: str) -> Iterator[Sentence]:
    """Give the sentences that the user says, in order.

    Left out are code, quoted lines, lists, letters, what follows a line that ends in a colon,
    sentences that begin inside quotation marks, and those of more than 500 characters. A message
    of more than 1,000 characters counts as pasted: only its first and its last line are read,
    if they are no longer than a sentence may be.
    """
    lines = list(_own_lines(message))
    if len(message) > PASTED_FROM:
        lines = [line for line in lines[:1] + lines[1:][-1:] if len(line) <= LONGEST]
    for line in lines:
        yield from _sentences(line)


def _own_lines(message: str) -> Iterator[str]:
    fenced = False
    for line in message.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        if _LETTER.match(line):
            return
        if fenced or not line.strip() or _NOT_OWN.match(line) or _FENCE.match(line):
            continue
        yield line
        folded = fold(line[-LONGEST:])
        if _INTRODUCES.search(folded) and not _INTRODUCES_ME.search(folded):
            return


def _sentences(line: str) -> Iterator[Sentence]:
    """Split at what ends a sentence, but not inside quotation marks."""
    start = seen = 0
    quoted = False
    for stop, after in (*(match.span() for match in _END.finditer(line)), (len(line), len(line))):
        if _ABBREVIATION.search(line[max(start, stop - 6) : stop].lower()) and stop < len(line):
            continue
        quoted ^= len(_QUOTE.findall(line, seen, stop)) % 2 == 1
        seen = stop
        if quoted:
            continue
        text = line[start:stop].strip() if stop - start <= LONGEST else ""
        if text and not _QUOTE.match(text):
            yield Sentence(text=text, folded=fold(text), end=fold(line[stop:after])[-1:])
        start = after
