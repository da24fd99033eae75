"""The words of a text as the keyword leg counts them: English stems, CJK characters and pairs."""

import re
import threading
import unicodedata
from functools import lru_cache

import Stemmer

_STOP_WORDS = """
    a about am an and are as at be been but by can could d did do does doing for from had has have
    having he her hers him his how i if in into is it its just ll m me my not of on or our re s she
    should so some t than that the their them then there these they this those to us user ve was we
    were what when where which who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""RECALL 1.1. `user` is among them because extracted facts all begin with it."""

_LATIN = "a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff"
_MARKS = "\u0300-\u036f"
"""Accents that compose with no letter stay inside their word."""
_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\U00020000-\U0003ffff"
_ASCII_WORD = re.compile("[a-z0-9]+(?:'[a-z]+)?")
_WORD = re.compile(
    f"([{_LATIN}0-9][{_LATIN}0-9{_MARKS}]*(?:['’][{_LATIN}{_MARKS}]+)?)"
    f"|([{_CJK}]+)"
    # The rest of the world's letters; vowel signs of Arabic, Hebrew and Indic scripts are no
    # letters to Python, and would cut words.
    f"|((?:(?![{_LATIN}0-9{_CJK}])[^\\W_]"
    "[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e4e]*)+)"
)
_LONGEST_ENDING = 2


class _Stemmers(threading.local):
    """PyStemmer's objects must not be shared between threads."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english", 0)


_stemmers = _Stemmers()


def tokens(text: str) -> list[str]:
    """Give the tokens of a text from left to right, repeated as often as they occur.

    Latin words and numbers are cut at the apostrophe, lose the stop words and are stemmed; a
    single letter before a longer word (l'école, o'clock) is left off instead. A run of CJK gives
    every character and every pair of neighbours. Words of other scripts stay as they are.
    """
    lowered = text.lower()
    if lowered.isascii():
        return list(filter(None, map(_stem, _ASCII_WORD.findall(lowered))))
    # lower() writes the Turkish capital İ as i and a dot that composes with nothing.
    lowered = unicodedata.normalize("NFC", lowered.replace("i\u0307", "i"))
    given: list[str] = []
    for word, run, other in _WORD.findall(lowered):
        if run:
            given.extend(run)
            given.extend(map(str.__add__, run, run[1:]))
        else:
            given.append(_stem(word) if word else other)
    return list(filter(None, given))


def stem(word: str) -> str:
    """Give the English stem of a word in lower case; a word of another script stays as it is."""
    return str(_stemmers.english.stemWord(word))


def likeness(one: str, other: str) -> float:
    """Give the share of tokens that two texts have in common, in 0..1: Dice of their sets."""
    left, right = set(tokens(one)), set(tokens(other))
    both = len(left) + len(right)
    return 2 * len(left & right) / both if both else 0.0


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    """Give the token of a Latin word, which may hold an apostrophe; empty for a stop word."""
    head, _, ending = word.replace("’", "'").partition("'")
    kept = ending if len(head) == 1 and len(ending) > _LONGEST_ENDING else head
    return "" if kept in STOP_WORDS else stem(kept)
