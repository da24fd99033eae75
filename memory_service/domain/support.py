"""Whether a fact rests on what was said, or was made up by who read it."""

import re
from collections.abc import Iterable

from memory_service.domain.words import tokens

_ASCII = re.compile("[a-z0-9]")
_TEMPLATE = frozenset({"用户"})
"""How extracted facts begin; `user` is no token at all."""


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """Give the words of texts, as supports compares them."""
    return frozenset[str]().union(*map(_words, texts))


def supports(said: frozenset[str], fact: str, *, wholly: bool = False) -> bool:
    """Tell whether the fact shares a word with words_of what was said; wholly: has no other.

    A word is a stem of a Latin word or a number, stop words aside; of scripts that do not part
    words, or bend them at their end, it is any two neighbouring letters. So a fact that was made
    up, or put into another language, has no support, and one in other words of the same language
    nearly always has.
    """
    words = _words(fact)
    return bool(words) and (words <= said if wholly else not words.isdisjoint(said))


def _words(text: str) -> frozenset[str]:
    return frozenset(word for token in tokens(text) for word in _parts(token)) - _TEMPLATE


def _parts(token: str) -> list[str]:
    """Give a Latin word as it is, of others the pairs of letters; a lone letter says nothing."""
    if _ASCII.search(token):
        return [token]
    return list(map(str.__add__, token, token[1:]))
