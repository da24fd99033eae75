"""An embedder that needs no model: hashed words and character n-grams. It compares spelling."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from memory_service.adapters.embedder_local import Encode, ModelThread
from memory_service.domain.text import normalize
from memory_service.ports import Vector

_WORD = re.compile(r"\w+")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_GRAM = 4
_PIECE = 32


class HashEmbedder:
    """Implements ports.Embedder. The same text gives the same vector in every process.

    A text is its words, the 4-grams of words (so that forms of a word are near each other), and
    the characters and character pairs of scripts without spaces. Each adds 1 + ln(count) to one of
    dims places, with a sign, both taken from its BLAKE2b hash. A text without any gives the zero
    row.
    """

    lexical = True
    likeness_floor = -1.0
    """None: spelling does not tell what is of another matter (住在北京, 搬到上海: cosine 0)."""

    def __init__(self, dims: int = 512) -> None:
        self.dims = dims
        self.fingerprint = f"hash_1_{dims}"
        self._thread = ModelThread("hash", lambda: self, dims=dims, piece=_PIECE)

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix."""
        return await self._thread.run(texts, _encode)

    async def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix; the same as for questions."""
        return await self._thread.run(texts, _encode)

    async def close(self) -> None:
        """Let go of the thread."""
        self._thread.close()

    def encode(self, texts: Sequence[str]) -> Vector:
        """Give the sums, not yet of unit length."""
        matrix = np.zeros((len(texts), self.dims), np.float32)
        for row, text in zip(matrix, texts, strict=True):
            for feature, times in Counter(_features(text)).items():
                digest = hashlib.blake2b(feature.encode(), digest_size=8).digest()
                number = int.from_bytes(digest, "big")
                sign = 1.0 if number & 1 else -1.0
                row[(number >> 1) % self.dims] += sign * (1.0 + math.log(times))
        return matrix


def _encode(model: HashEmbedder) -> Encode:
    return model.encode


def _features(text: str) -> Iterator[str]:
    for word in _WORD.findall(normalize(text)):
        if _WIDE.search(word):
            yield from (f"c:{character}" for character in word)
            yield from (f"p:{first}{second}" for first, second in pairwise(word))
        else:
            yield f"w:{word}"
            framed = f" {word} "
            yield from (f"g:{framed[i : i + _GRAM]}" for i in range(len(framed) - _GRAM + 1))
