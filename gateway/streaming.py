"""A streaming RPC as server-sent events, and what ends it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import Message
from starlette.types import Receive, Scope, Send

from gateway import sse
from gateway.codec import encode
from gateway.errors import Code, Refusal, from_rpc
from rpc.errors import Failure

Call = Any  # grpc.aio.UnaryStreamCall, whose type parameters nobody here knows
Leave = Callable[[], Awaitable[None]]
LAST = ("done", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """Seconds, and the event that says that the process ends."""

    first_event_timeout: float
    heartbeat: float
    closing: asyncio.Event = field(default_factory=asyncio.Event)


async def first_answer(call: Call, receive: Receive, settings: StreamSettings, service: str) -> Any:
    """Give the first answer, or None if there is none; the client may leave meanwhile.

    A failure before it is raised as a Refusal, so that it keeps its HTTP status. Whatever is
    raised, the call is cancelled.
    """
    reading = asyncio.ensure_future(call.read())
    leaving = asyncio.ensure_future(left(receive))
    try:
        await asyncio.wait(
            {reading, leaving},
            timeout=settings.first_event_timeout,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if reading.done():
            answer = reading.result()
            return None if answer is grpc.aio.EOF else answer
        if leaving.done():
            raise Refusal(Failure(Code.CANCELLED, "CLIENT_LEFT", "the client has left"))
        text = f"the {service} service took too long to begin"
        raise Refusal(Failure(Code.DEADLINE_EXCEEDED, "NO_FIRST_EVENT", text))
    except grpc.RpcError as error:
        raise from_rpc(error, service) from None
    finally:
        leaving.cancel()
        if not reading.done():
            reading.cancel()
            call.cancel()


async def left(receive: Receive) -> None:
    """Return when the client has gone; the body has been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream:
    """The ASGI answer: first, then the rest of the call, as events.

    place is where the stream begins; without ids, the started event gives them. When the client
    leaves, the RPC is cancelled at once. What fails here is an error event without an id, whose
    seq is 0: it is none of the turn's, which may be resumed after the last id.
    """

    def __init__(
        self, call: Call, first: Any, place: sse.Place, settings: StreamSettings, service: str
    ) -> None:
        self._call = call
        self._first = first
        self._place = place
        self._settings = settings
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the turn or the client is gone."""
        del scope
        leaving = asyncio.ensure_future(left(receive))
        sending = asyncio.ensure_future(self._send(send))
        try:
            await asyncio.wait({leaving, sending}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            self._call.cancel()
            leaving.cancel()
            sending.cancel()
            await asyncio.gather(leaving, sending, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        async with aclosing(self._frames()) as frames:
            begin = await anext(frames)
            headers = _headers(self._place.conversation_id)
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send(_body(begin, more=True))
            async for frame in frames:
                await send(_body(frame, more=True))
        await send(_body(b"", more=False))

    async def _frames(self) -> AsyncGenerator[bytes, None]:
        kind = ""
        try:
            kind, frame = self._framed(self._first)
            yield frame
            async with aclosing(heard(self._call, self._settings)) as answers:
                async for answer in answers:
                    if answer is None:
                        yield sse.HEARTBEAT
                        continue
                    kind, frame = self._framed(answer)
                    yield frame
        except grpc.RpcError as error:
            if kind not in LAST:
                yield _failed(from_rpc(error, self._service).failure)
            return
        if kind in LAST:
            return
        if self._settings.closing.is_set():
            text = "the gateway is shutting down; resume the turn"
            yield _failed(Failure(Code.UNAVAILABLE, "SHUTTING_DOWN", text))
        else:
            text = f"the {self._service} service ended the turn without saying how"
            yield _failed(Failure(Code.INTERNAL, "STREAM_ENDED", text))

    def _framed(self, answer: Any) -> tuple[str, bytes]:
        event: Any = answer.event
        kind: str = event.WhichOneof("event") or "unknown"
        if kind == "started":
            started = event.started
            self._place = sse.Place(started.conversation_id, started.turn_id)
        here = sse.Place(self._place.conversation_id, self._place.turn_id, event.seq)
        identified = here.conversation_id and here.turn_id
        return kind, sse.frame(kind, encode(event), sse.event_id(here) if identified else "")


async def heard(call: Call, settings: StreamSettings) -> AsyncGenerator[Message | None, None]:
    """Give the answers of a call as they come, None after each heartbeat of silence.

    Ends when the call or the process does; nothing is read ahead, so a slow reader slows the call.
    """
    closing = asyncio.ensure_future(settings.closing.wait())
    reading = asyncio.ensure_future(call.read())
    try:
        while not closing.done():
            await asyncio.wait(
                {reading, closing},
                timeout=settings.heartbeat,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if reading.done():
                answer = reading.result()
                if answer is grpc.aio.EOF:
                    return
                yield answer
                reading = asyncio.ensure_future(call.read())
            elif not closing.done():
                yield None
    finally:
        closing.cancel()
        reading.cancel()
        reading.add_done_callback(_forget)


def _forget(reading: "asyncio.Future[Any]") -> None:
    """Look at how a read ended that nobody waits for, or asyncio complains."""
    if not reading.cancelled():
        reading.exception()


def _failed(failure: Failure) -> bytes:
    error = {"reason": failure.reason, "message": failure.message}
    return sse.frame("error", {"seq": 0, "error": error})


def _headers(conversation_id: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", f"{sse.MEDIA_TYPE}; charset=utf-8".encode()),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
        (b"x-conversation-id", sse.escaped(conversation_id).encode()),
        (b"x-content-type-options", b"nosniff"),
    ]


def _body(chunk: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": chunk, "more_body": more}
