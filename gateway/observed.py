"""What happens around each request: its id, and one line about it."""

import re
import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rpc.ids import new_id
from rpc.request import HEADER, set_request_id

log = structlog.get_logger("gateway")
_ACCEPTABLE = re.compile(r"[\x21-\x7e]{1,128}")
_QUIET = ("/healthz",)


class Observed:
    """Gives each request the caller's id or a new one, which every answer and every RPC carries.

    The line says path and status; never the query, the body or a header, which may hold the
    user's words or a key.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        sent = Headers(scope=scope).get(HEADER, "")
        ours = sent if _ACCEPTABLE.fullmatch(sent) else new_id()
        set_request_id(ours)
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = ours
            await send(message)

        begun = time.perf_counter()
        try:
            await self._app(scope, receive, answer)
        finally:
            write = log.debug if scope["path"] in _QUIET else log.info
            write(
                "http",
                method=scope["method"],
                path=scope["path"],
                status=status,
                elapsed_ms=round((time.perf_counter() - begun) * 1000, 2),
            )
