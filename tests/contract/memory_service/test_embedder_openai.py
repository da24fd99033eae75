"""How the client of an embeddings endpoint copes with what endpoints do."""

import asyncio
import json
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from memory_service.adapters.breaker import Breaker
from memory_service.adapters.embedder_openai import EmbeddingEndpoint, OpenAIEmbedder
from memory_service.domain.errors import EmbedderUnavailable
from tests.services.embeddings_server import EmbeddingsServer, embeddings_server


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with embeddings_server() as running:
        yield running


def client(server: EmbeddingsServer, **values: object) -> OpenAIEmbedder:
    breaker = Breaker(threshold=2, cool_down=0.05)
    wanted = {"base_url": server.base_url, "model": "m", "dims": 16, "query_seconds": 10.0}
    return OpenAIEmbedder(EmbeddingEndpoint(**{**wanted, **values}), breaker=breaker)  # type: ignore[arg-type]


async def test_vectors_come_in_the_order_of_the_texts_and_as_unit_rows(
    server: EmbeddingsServer,
) -> None:
    embedder = client(server, batch=2, api_key="secret", ask_dims=True)
    texts = [f"text {n}" for n in range(5)]
    rows = await embedder.embed_documents(texts)
    for text, row in zip(texts, rows, strict=True):
        raw = np.array(server.embedding(text))
        assert row == pytest.approx(raw / np.linalg.norm(raw), abs=1e-6)
    assert [len(request["input"]) for request in server.requests] == [2, 2, 1]
    assert {request["dimensions"] for request in server.requests} == {16}
    assert set(server.keys) == {"Bearer secret"}
    assert "secret" not in repr(embedder._endpoint)
    await embedder.close()


async def test_blank_texts_are_not_sent(server: EmbeddingsServer) -> None:
    embedder = client(server)
    rows = await embedder.embed_documents(["", "a", " \n"])
    assert [bool(row.any()) for row in rows] == [False, True, False]
    assert server.requests[0]["input"] == ["a"]
    assert server.keys == [None]
    await embedder.close()


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_fault_is_tried_again(server: EmbeddingsServer, status: int) -> None:
    server.statuses = [status]
    server.headers = {"Retry-After": "0.01"}
    embedder = client(server)
    assert (await embedder.embed_queries(["a"])).any()
    assert len(server.requests) == 2
    await embedder.close()


async def test_attempts_are_bounded(server: EmbeddingsServer) -> None:
    server.statuses = [503] * 10
    server.headers = {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}
    embedder = client(server, attempts=2)
    with pytest.raises(EmbedderUnavailable, match="unavailable"):
        await embedder.embed_queries(["a"])
    assert len(server.requests) == 2
    await embedder.close()


async def test_a_wrong_key_is_not_tried_again(server: EmbeddingsServer) -> None:
    server.statuses = [401]
    embedder = client(server)
    with pytest.raises(EmbedderUnavailable, match="unavailable"):
        await embedder.embed_queries(["a"])
    assert len(server.requests) == 1
    await embedder.close()


async def test_a_refused_text_gets_the_zero_row_and_holds_up_no_other(
    server: EmbeddingsServer,
) -> None:
    server.poison = "bad"
    embedder = client(server)
    rows = await embedder.embed_documents(["a", "b", "bad", "c", "d"])
    assert [bool(row.any()) for row in rows] == [True, True, False, True, True]
    await embedder.close()


async def test_an_endpoint_that_refuses_everything_is_unavailable(
    server: EmbeddingsServer,
) -> None:
    server.statuses = [400] * 10
    embedder = client(server)
    with pytest.raises(EmbedderUnavailable, match="unavailable"):
        await embedder.embed_documents(["a", "b"])
    await embedder.close()


async def test_a_zero_or_odd_vector_becomes_the_zero_row(server: EmbeddingsServer) -> None:
    server.special = {"zero": [0.0] * 16, "nan": [float("nan")] * 16}
    embedder = client(server)
    rows = await embedder.embed_documents(["zero", "a", "nan"])
    assert [bool(row.any()) for row in rows] == [False, True, False]
    await embedder.close()


async def test_vectors_of_another_length_are_a_mismatch(server: EmbeddingsServer) -> None:
    embedder = client(server, dims=8)
    with pytest.raises(EmbedderUnavailable, match="dim_mismatch"):
        await embedder.embed_documents(["a"])
    await embedder.close()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"data": [{"index": 0}]}',
        b'{"data": ["x"]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
        json.dumps({"data": [{"index": 0, "embedding": [1.0] * 16}] * 2}).encode(),
    ],
)
async def test_an_answer_that_is_no_answer_is_unavailable(
    server: EmbeddingsServer, body: bytes
) -> None:
    server.body = body
    embedder = client(server)
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed_documents(["a"])
    await embedder.close()


async def test_a_silent_endpoint_is_bounded_then_not_asked_then_found_again(
    server: EmbeddingsServer,
) -> None:
    server.hang.clear()
    embedder = client(server, query_seconds=0.2)
    causes = []
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable) as refused:
            await embedder.embed_queries(["a"])
        causes.append(refused.value.cause)
    assert causes == ["timeout", "timeout", "breaker_open"]

    server.hang.set()
    await asyncio.sleep(0.1)
    assert (await embedder.embed_queries(["a"])).any()
    await embedder.close()


async def test_a_caller_who_leaves_early_still_teaches_the_breaker(
    server: EmbeddingsServer,
) -> None:
    server.hang.clear()
    embedder = client(server, query_seconds=0.1)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await embedder.embed_queries(["a"])
    await asyncio.sleep(0.15)
    assert not embedder._breaker.closed
    await embedder.close()


async def test_a_closed_port_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = EmbeddingEndpoint(
        base_url=f"http://127.0.0.1:{port}/v1", model="m", dims=4, attempts=1
    )
    embedder = OpenAIEmbedder(endpoint)
    with pytest.raises(EmbedderUnavailable, match="unavailable"):
        await embedder.embed_queries(["a"])
    await embedder.close()


async def test_models_whose_names_read_alike_have_different_fingerprints() -> None:
    names = ["a/b", "a-b", "A/B", "a" * 300, ""]
    embedders = [
        OpenAIEmbedder(EmbeddingEndpoint(base_url="http://127.0.0.1:1", model=name, dims=1536))
        for name in names
    ]
    fingerprints = {embedder.fingerprint for embedder in embedders}
    assert len(fingerprints) == len(names)
    assert all(len(fingerprint) <= 64 for fingerprint in fingerprints)
    for embedder in embedders:
        await embedder.close()
