"""A small OpenAI-compatible chat endpoint of our own, scripted to the byte.

    with openai_server(says("He", "llo")) as server:
        …ask server.base_url…
        assert server.calls[0].body["stream"]

Each request takes the next script; the last one is used again and again. It is real HTTP on a
thread of its own, so synchronous tests and other processes may use it too.
"""

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

LONGEST_HOLD = 120.0
DONE = b"data: [DONE]\n\n"


class Hold:
    """A step that waits until the server is released or the client leaves."""


HOLD = Hold()

Step = bytes | float | Hold
"""Bytes to send at once, seconds to wait, or HOLD."""


@dataclass(frozen=True)
class Script:
    """What to answer: the steps of the body, after status and headers."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream; charset=utf-8"
    aborts: bool = False
    """Break the connection instead of ending the response."""
    resets: bool = False
    """Break the connection before any answer."""
    before_headers: float = 0.0
    """Seconds of silence before the status."""


@dataclass
class Call:
    """A request that came, and what its client did."""

    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: dict[str, Any]
    closed_early: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the response is over, or its client has left."""

    @property
    def key(self) -> str | None:
        return self.headers.get("authorization")


class OpenAIServer(ThreadingHTTPServer):
    """scripts may be changed by a test at any time."""

    daemon_threads = True

    def __init__(self, *scripts: Script, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.scripts = list(scripts) or [says("Hello", " there.")]
        self.calls: list[Call] = []
        self.connections = 0
        self.asked = threading.Event()
        """Set by the first request."""
        self.released = threading.Event()
        """Ends every HOLD."""
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def take(self, call: Call) -> Script:
        with self._lock:
            self.calls.append(call)
            self.asked.set()
            return self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that leaves is what tests do."""


class _Left(Exception):
    """The client has closed its connection."""


class _Handler(BaseHTTPRequestHandler):
    server: OpenAIServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        """Answer /v1/models."""
        models = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
        self._head(200, {"Content-Type": "application/json"}, body=json.dumps(models).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        call = Call(self.path, headers, body)
        script = self.server.take(call)
        try:
            self._answer(script)
        except (_Left, ConnectionError):
            call.closed_early = True
            self.close_connection = True
        finally:
            call.ended.set()

    def _answer(self, script: Script) -> None:
        if script.resets:
            return self._reset()
        self._wait(script.before_headers)
        headers = {"Content-Type": script.content_type, **script.headers}
        self._head(script.status, headers)
        for step in script.steps:
            match step:
                case bytes():
                    self._send(step)
                case Hold():
                    self._wait(LONGEST_HOLD, self.server.released)
                case _:
                    self._wait(step)
        if script.aborts:
            return self._reset()
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _head(self, status: int, headers: Mapping[str, str], *, body: bytes | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if body is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body or b"")
        self.wfile.flush()

    def _send(self, piece: bytes) -> None:
        if self._left(0):
            raise _Left
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def _wait(self, seconds: float, released: threading.Event | None = None) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not (released and released.is_set()):
            if self._left(min(0.01, seconds)):
                raise _Left

    def _left(self, seconds: float) -> bool:
        """Tell whether the client closes its side within seconds."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _reset(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


Served = TypeVar("Served", bound=OpenAIServer)


@contextmanager
def openai_server(*scripts: Script, port: int = 0) -> Iterator[OpenAIServer]:
    """Serve scripts on loopback; port 0: any free one."""
    with served(OpenAIServer(*scripts, port=port)) as server:
        yield server


@contextmanager
def served(server: Served) -> Iterator[Served]:
    """Serve until the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


# ---------------------------------------------------------------- scripts and their parts


def event(payload: object) -> bytes:
    """Write one server-sent event."""
    return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def chunk(
    delta: Mapping[str, Any] | None = None, *, finish: str | None = None, **more: object
) -> bytes:
    """Write a chunk with one choice."""
    return event(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "scripted",
            "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}],
            **more,
        }
    )


def role() -> bytes:
    return chunk({"role": "assistant", "content": ""})


def text(content: str) -> bytes:
    return chunk({"content": content})


def usage(prompt: int = 11, completion: int = 2) -> bytes:
    """Write the last chunk of those who ask for usage: no choices."""
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": counts}
    )


def says(*pieces: str, finish: str = "stop") -> Script:
    """Script an answer as OpenAI streams it: role, pieces, finish, usage, [DONE]."""
    said = [text(piece) for piece in pieces]
    return Script([role(), *said, chunk(finish=finish), usage(), DONE])


def says_slowly(*pieces: str, every: float) -> Script:
    """Script an answer with so many seconds before each piece."""
    said = [step for piece in pieces for step in (every, text(piece))]
    return Script([role(), *said, chunk(finish="stop"), usage(), DONE])


def streams(*steps: Step) -> Script:
    """Script a body step by step."""
    return Script(steps)


def refuses(
    status: int, message: str = "as the test wishes", *, code: object = None, **headers: str
) -> Script:
    """Script an error status with OpenAI's error body; headers as retry_after="1"."""
    body = {"error": {"message": message, "type": "invalid_request_error", "code": code}}
    return Script(
        [json.dumps(body).encode()],
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        content_type="application/json",
    )


def answers(content: object, *, finish: str | None = "stop", **message: object) -> Script:
    """Script a whole answer, not streamed."""
    said = {"role": "assistant", "content": content, **message}
    return answers_body({"choices": [{"index": 0, "message": said, "finish_reason": finish}]})


def answers_body(body: object) -> Script:
    """Script the body of a response; bytes as they are, anything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return Script([raw], content_type="application/json")
