"""Which words occur where: the keyword part of relevance, BM25 as a share of the attainable."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from math import log

import numpy as np
from numpy.typing import NDArray

from memory_service.domain.columns import grown

_K1 = 0.9
_B = 0.4
_COUNT_BITS = 16
"""A posting is slot and count in one number; 16 KiB of text hold fewer than 2^16 tokens."""
_COUNT_MASK = (1 << _COUNT_BITS) - 1


class Postings:
    """Document frequencies, lengths and posting lists of one user's rows, by slot."""

    def __init__(self) -> None:
        self._lists: defaultdict[str, array[int]] = defaultdict(partial(array, "q"))
        self._lengths: NDArray[np.float64] = np.zeros(1)
        self._rows = 0
        self._tokens = 0

    def reserve(self, size: int) -> None:
        """Make room for slots below size."""
        self._lengths = grown(self._lengths, size)

    def add(self, slot: int, words: Sequence[str]) -> int:
        """Enter a row's tokens and give how many different ones they were."""
        counts = Counter(words)
        lists, first = self._lists, slot << _COUNT_BITS
        for word, count in counts.items():
            lists[word].append(first + count)
        self._lengths[slot] = len(words)
        self._rows += 1
        self._tokens += len(words)
        return len(counts)

    def remove(self, slot: int, words: Sequence[str]) -> int:
        """Take a row out, given the tokens it was entered with; gives what add gave."""
        counts = Counter(words)
        first = slot << _COUNT_BITS
        for word, count in counts.items():
            postings = self._lists[word]
            postings.remove(first + count)
            if not postings:
                del self._lists[word]
        self._lengths[slot] = 0.0
        self._rows -= 1
        self._tokens -= len(words)
        return len(counts)

    def evidence(self, words: Sequence[str], size: int) -> tuple[NDArray[np.float64], float]:
        """Give c of RECALL 1.2 for the slots below size, in [0,1), and cover of the query.

        A query without tokens is covered to 0: words say nothing about it.
        """
        weights = {word: self._idf(len(self._lists.get(word, ()))) for word in words}
        best = sum(weights.values())
        known = {word: weight for word, weight in weights.items() if word in self._lists}
        if not known:
            return np.zeros(size), 0.0
        lists = [self._lists[word] for word in known]
        postings = np.frombuffer(b"".join(lists), np.int64)
        slots = postings >> _COUNT_BITS
        counts = (postings & _COUNT_MASK).astype(np.float64)
        average = max(1.0, self._tokens / self._rows)
        room = _K1 * (1 - _B + _B * self._lengths[slots] / average)
        idf = np.repeat(np.array(list(known.values())), [len(one) for one in lists])
        gained = np.bincount(slots, idf * counts / (counts + room), minlength=size)
        return gained / best, min(1.0, sum(known.values()) / best)

    def _idf(self, frequency: int) -> float:
        return log(1 + (self._rows - frequency + 0.5) / (frequency + 0.5))
