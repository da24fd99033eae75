"""A small OpenAI-compatible embeddings endpoint of our own, which can be told to misbehave."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


class EmbeddingsServer(ThreadingHTTPServer):
    """Vectors from the hash of a text. Attributes may be changed by a test at any time."""

    daemon_threads = True

    def __init__(self, dims: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.dims = dims
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.statuses: list[int] = []
        """Answers to give instead of the next ones."""
        self.headers: dict[str, str] = {}
        self.poison: str | None = None
        """A text that is refused."""
        self.poison_status = 400
        self.special: dict[str, list[float]] = {}
        """Embeddings to give for certain texts."""
        self.body: bytes | None = None
        """What to answer instead."""
        self.hang = threading.Event()
        self.hang.set()
        """Cleared: no answer until it is set."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def embedding(self, text: str) -> list[float]:
        if text in self.special:
            return self.special[text]
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        return [float(x) for x in 3.0 * np.random.default_rng(seed).standard_normal(self.dims)]


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingsServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.keys.append(self.headers.get("Authorization"))
        self.server.hang.wait(30)
        status, answer = self._answer(body)
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(self, body: dict[str, Any]) -> tuple[int, bytes]:
        if self.path != "/v1/embeddings":
            return 404, b"{}"
        if self.server.statuses:
            return self.server.statuses.pop(0), b'{"error": {"message": "as the test wishes"}}'
        if self.server.body is not None:
            return 200, self.server.body
        texts = body["input"]
        if any(not text or text == self.server.poison for text in texts):
            return self.server.poison_status, b'{"error": {"message": "refused"}}'
        data = [
            {"object": "embedding", "index": index, "embedding": self.server.embedding(text)}
            for index, text in enumerate(texts)
        ]
        answer = {"object": "list", "model": body["model"], "data": data[::-1]}
        return 200, json.dumps(answer).encode()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def embeddings_server(dims: int = 16) -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer(dims) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.hang.set()
            server.shutdown()
            thread.join()
