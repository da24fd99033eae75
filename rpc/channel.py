"""How our processes call each other."""

import json
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import grpc

from rpc.keepalive import Keepalive, client_options
from rpc.request import HEADER, request_id

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_RETRY = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
}


def open_channel(
    target: str,
    *,
    service_token: str = "",
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    keepalive: Keepalive | None = None,
) -> grpc.aio.Channel:
    """Open a channel whose calls carry the token and the id of the request they are made for.

    A call that fails with UNAVAILABLE before its first answer is tried up to three times in all,
    within its deadline; nothing else is. A server that comes back is found again within seconds.
    A target that resolves to several addresses is shared out among those that answer.
    """
    options = (
        *client_options(keepalive or Keepalive()),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.service_config", json.dumps(_RETRY)),
        ("grpc.enable_retries", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 1000),
        ("grpc.max_reconnect_backoff_ms", 3000),
    )
    return _Channel(grpc.aio.insecure_channel(target, options=options), service_token)


class _Channel(grpc.aio.Channel):
    """A channel that adds metadata to each call.

    Not an interceptor: in grpc.aio those wrap each stream in one more task and queue.
    """

    def __init__(self, inner: grpc.aio.Channel, service_token: str) -> None:
        self._inner = inner
        self._token = (("authorization", f"Bearer {service_token}"),) if service_token else ()

    def _with_metadata(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, metadata: Sequence[Any] | None = None, **options: Any) -> Any:
            given = tuple(metadata or ())
            ours = request_id()
            if ours and all(key != HEADER for key, _ in given):
                given = (*given, (HEADER, ours))
            return call(*args, metadata=(*given, *self._token), **options)

        return called

    def unary_unary(self, *args: Any, **options: Any) -> Any:
        return self._with_metadata(self._inner.unary_unary(*args, **options))

    def unary_stream(self, *args: Any, **options: Any) -> Any:
        return self._with_metadata(self._inner.unary_stream(*args, **options))

    def stream_unary(self, *args: Any, **options: Any) -> Any:
        return self._with_metadata(self._inner.stream_unary(*args, **options))

    def stream_stream(self, *args: Any, **options: Any) -> Any:
        return self._with_metadata(self._inner.stream_stream(*args, **options))

    async def close(self, grace: float | None = None) -> None:
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002 - as in grpc.aio.Channel
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._inner.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self._inner.close(None)
