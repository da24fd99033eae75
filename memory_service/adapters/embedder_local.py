"""What embedders inside this process have in common: a thread of their own, and unit rows."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from memory_service.domain.errors import EmbedderUnavailable
from memory_service.ports import Vector

Encode = Callable[[Sequence[str]], NDArray[Any]]
"""Texts to a (len(texts), dims) matrix; plain and slow."""

_UNAVAILABLE = "unavailable"

_log = structlog.get_logger(__name__)


class EmbedderMissing(Exception):
    """The package of an optional embedder is not installed; the text says which one."""


def unit_rows(matrix: NDArray[Any]) -> Vector:
    """Give float32 rows of unit length; a row that is zero or not finite becomes all zeros."""
    rows = np.asarray(matrix, np.float64)
    rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    # Scaled first: squares of huge numbers overflow, of tiny ones vanish.
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    scaled = rows / np.where(largest > 0.0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit = scaled / np.where(lengths > 0.0, lengths, 1.0)
    return unit.astype(np.float32)


class ModelThread:
    """One thread in which a model is loaded and used, so that it never holds up the event loop.

    load gives the model; it runs once, at start() or at the first text. Texts go through in
    pieces of at most `piece`, so that a question waits for one piece of a long batch at most.
    """

    def __init__(self, name: str, load: Callable[[], object], *, dims: int, piece: int) -> None:
        self._name = name
        self._load = load
        self._dims = dims
        self._piece = piece
        self._pool = ThreadPoolExecutor(1, f"embedder-{name}")
        self._loading: Future[object] | None = None

    def start(self) -> None:
        """Begin to load the model in the background."""
        if self._loading is None:
            self._loading = self._pool.submit(self._timed_load)

    async def run(self, texts: Sequence[str], encode: Callable[[Any], Encode]) -> Vector:
        """Give unit rows, zero ones where the model gave nothing usable.

        encode picks the model's function. Raises EmbedderUnavailable if the model did not load.
        """
        self.start()
        loop = asyncio.get_running_loop()
        pieces = [
            await loop.run_in_executor(
                self._pool, self._encode, texts[start : start + self._piece], encode
            )
            for start in range(0, len(texts), self._piece)
        ]
        return np.concatenate([np.zeros((0, self._dims), np.float32), *pieces])

    def close(self) -> None:
        """Let the thread end."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _timed_load(self) -> object:
        began = time.monotonic()
        model = self._load()
        _log.info("embedder_loaded", name=self._name, seconds=round(time.monotonic() - began, 2))
        return model

    def _encode(self, texts: Sequence[str], encode: Callable[[Any], Encode]) -> Vector:
        assert self._loading is not None  # noqa: S101 — start() queued it before this
        if self._loading.exception() is not None:
            _log.error("embedder_not_loaded", name=self._name, error=str(self._loading.exception()))
            raise EmbedderUnavailable(_UNAVAILABLE)
        return unit_rows(encode(self._loading.result())(list(texts)))
