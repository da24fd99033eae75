"""An embedder behind any OpenAI-compatible `/v1/embeddings`."""

import asyncio
import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import numpy as np
import structlog

from memory_service.adapters.breaker import Breaker
from memory_service.adapters.embedder_local import unit_rows
from memory_service.domain.errors import EmbedderUnavailable
from memory_service.ports import Vector

_REFUSED = frozenset({400, 413, 422})
"""The endpoint answers, and cannot take this input."""

_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504})
"""Worth another attempt."""

_TIMEOUT = "timeout"
_UNAVAILABLE = "unavailable"
_BREAKER_OPEN = "breaker_open"
_DIM_MISMATCH = "dim_mismatch"
"""Causes, in the words of EmbedderUnavailable."""

_LONGEST_PAUSE = 2.0
_HARMLESS = "hello"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingEndpoint:
    """Where and what to ask. base_url ends before `/embeddings`, as for OpenAI's own clients."""

    base_url: str
    model: str
    dims: int
    api_key: str = field(default="", repr=False)
    ask_dims: bool = False
    """Send `dimensions`, for models that can shorten their vectors."""
    batch: int = 64
    query_seconds: float = 1.0
    document_seconds: float = 20.0
    attempts: int = 3
    likeness_floor: float = 0.2
    """See ports.Embedder; models differ, and what is too low only costs more judging."""


class OpenAIEmbedder:
    """Implements ports.Embedder.

    A call is bounded in time and attempts; after some failures in a row calls fail at once until
    a trial succeeds. A text that the endpoint refuses while it takes others gets the zero row.
    """

    lexical = False

    def __init__(self, endpoint: EmbeddingEndpoint, *, breaker: Breaker | None = None) -> None:
        self.dims = endpoint.dims
        self.likeness_floor = endpoint.likeness_floor
        self.fingerprint = _fingerprint(endpoint)
        self._endpoint = endpoint
        self._breaker = breaker or Breaker()
        self._calls: set[asyncio.Task[Vector]] = set()
        self._http = httpx2.AsyncClient(
            base_url=endpoint.base_url.rstrip("/") + "/",
            headers={"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {},
        )

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix. Raises EmbedderUnavailable."""
        return await self._embed(texts, self._endpoint.query_seconds)

    async def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), dims) matrix. Raises EmbedderUnavailable."""
        return await self._embed(texts, self._endpoint.document_seconds)

    async def close(self) -> None:
        """Let go of the connections."""
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await self._http.aclose()

    async def _embed(self, texts: Sequence[str], seconds: float) -> Vector:
        """Embed what is not blank, batch by batch, each within seconds."""
        matrix = np.zeros((len(texts), self.dims), np.float32)
        said = [place for place, text in enumerate(texts) if text.strip()]
        for start in range(0, len(said), self._endpoint.batch):
            places = said[start : start + self._endpoint.batch]
            matrix[places] = await self._call([texts[place] for place in places], seconds)
        return matrix

    async def _call(self, texts: list[str], seconds: float) -> Vector:
        """Ask in a task of its own, so that its outcome counts whoever still waits for it."""
        if not self._breaker.admit():
            raise EmbedderUnavailable(_BREAKER_OPEN)
        call = asyncio.create_task(self._attempt(texts, seconds))
        self._calls.add(call)
        call.add_done_callback(self._forget)
        return await asyncio.shield(call)

    def _forget(self, call: asyncio.Task[Vector]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # seen, even if the caller went away

    async def _attempt(self, texts: list[str], seconds: float) -> Vector:
        try:
            async with asyncio.timeout(seconds):
                vectors = await self._divide(texts)
        except (TimeoutError, EmbedderUnavailable) as fault:
            cause = getattr(fault, "cause", _TIMEOUT)
            self._breaker.failure()
            _log.warning("embedder_away", cause=cause, model=self._endpoint.model)
            raise EmbedderUnavailable(cause) from fault
        self._breaker.success()
        return vectors

    async def _divide(self, texts: list[str]) -> Vector:
        """Ask for all; if that is refused, for halves, down to the texts that are to blame."""
        vectors = await self._ask(texts)
        if vectors is not None:
            return vectors
        if len(texts) > 1:
            middle = len(texts) // 2
            halves = [await self._divide(texts[:middle]), await self._divide(texts[middle:])]
            return np.concatenate(halves)
        if await self._ask([_HARMLESS]) is None:
            raise EmbedderUnavailable(_UNAVAILABLE)
        _log.warning("embedder_refused_text", model=self._endpoint.model)
        return np.zeros((1, self.dims), np.float32)

    async def _ask(self, texts: list[str]) -> Vector | None:
        """Give the vectors; None if the endpoint refuses these texts."""
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "input": texts,
            "encoding_format": "float",
        }
        if self._endpoint.ask_dims:
            body["dimensions"] = self.dims
        response = await self._post(body)
        if response.status_code in _REFUSED:
            return None
        if response.status_code != httpx2.codes.OK:
            raise EmbedderUnavailable(_UNAVAILABLE)
        return self._read(response, len(texts))

    async def _post(self, body: dict[str, object]) -> httpx2.Response:
        """Post with a bounded number of attempts; the time is bounded by who calls."""
        for attempt in range(1, self._endpoint.attempts + 1):
            last = attempt == self._endpoint.attempts
            pause = random.uniform(0.5, 1.0) * 0.2 * 2**attempt  # noqa: S311 — jitter
            try:
                response = await self._http.post("embeddings", json=body, timeout=None)
            except httpx2.HTTPError as fault:
                if last:
                    raise EmbedderUnavailable(_UNAVAILABLE) from fault
            else:
                if last or response.status_code not in _PASSING:
                    return response
                pause = max(pause, _retry_after(response))
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))
        raise EmbedderUnavailable(_UNAVAILABLE)

    def _read(self, response: httpx2.Response, wanted: int) -> Vector:
        """Give unit rows in the order of the texts. Raises EmbedderUnavailable if it cannot."""
        try:
            data: list[dict[str, Any]] = response.json()["data"]
            in_order = sorted(data, key=lambda one: one.get("index", 0))
            vectors = np.array([one["embedding"] for one in in_order], np.float64)
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise EmbedderUnavailable(_UNAVAILABLE) from fault
        if vectors.shape != (wanted, self.dims):
            _log.error("embedder_wrong_shape", shape=vectors.shape, expected=(wanted, self.dims))
            raise EmbedderUnavailable(_DIM_MISMATCH)
        return unit_rows(vectors)


def _retry_after(response: httpx2.Response) -> float:
    """Give the seconds that the endpoint asks for; 0 if it does not, or gives a date."""
    try:
        return float(response.headers.get("retry-after", 0))
    except ValueError:
        return 0.0


def _fingerprint(endpoint: EmbeddingEndpoint) -> str:
    """Name model and dims; the digest tells models apart whose names read alike."""
    words = re.sub("[^a-z0-9]+", "_", endpoint.model.lower()).strip("_")[:36]
    digest = hashlib.sha256(endpoint.model.encode()).hexdigest()[:8]
    return f"openai_{words}_{digest}_{endpoint.dims}"
