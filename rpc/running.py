"""One gRPC server: a service, its health and its reflection at one address."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health
from grpc_reflection.v1alpha import (
    reflection,
    reflection_pb2_grpc,
)

from rpc import listen
from rpc.channel import MAX_MESSAGE_BYTES
from rpc.drain import Drain
from rpc.errors import FailureOf
from rpc.handling import Interceptor, Registrar, UnknownMethods
from rpc.health import Pulse, Ready
from rpc.interceptors import errors, observed, token, with_request_id
from rpc.keepalive import Keepalive, server_options

log = structlog.get_logger("rpc")
_LAST_WORDS = 1.0  # seconds that ended calls have to send their status
_LAST_BYTES = 0.4  # seconds that gRPC has to close its connections


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server listens; seconds and bytes.

    listen is host:port, [IPv6]:port or unix:path. reuse_port lets several processes have the port
    at once, which is for workers only. ready is asked again poll seconds after its last answer and
    may take poll_timeout.
    """

    listen: str
    service_token: str = ""
    grace: float = 10.0
    max_message_bytes: int = MAX_MESSAGE_BYTES
    keepalive: Keepalive = field(default_factory=Keepalive)
    reuse_port: bool = False
    poll: float = 1.0
    poll_timeout: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service: its full proto name, the generated add function, who serves, what errors mean.

    domain is the ErrorInfo.domain of its failures.
    """

    name: str
    add: Callable[[Any, Any], None]
    servicer: Any
    failure_of: FailureOf
    domain: str


class RunningServer:
    """A server that listens at address; port is 0 for a unix socket."""

    def __init__(
        self, server: grpc.aio.Server, drain: Drain, pulse: Pulse, address: listen.Tcp | listen.Unix
    ) -> None:
        self.address = str(address)
        self.port = address.port if isinstance(address, listen.Tcp) else 0
        self._server = server
        self._drain = drain
        self._pulse = pulse

    async def stop(self, grace: float) -> None:
        """Refuse new calls, wait for the running ones, end them after grace seconds.

        Health says NOT_SERVING from the start. A call that is ended gets UNAVAILABLE, reason
        SHUTTING_DOWN. Streams of health and reflection are not waited for. Takes at most grace + 2
        seconds, whatever handlers do.
        """
        await self._pulse.stop()
        self._drain.close()
        stopping = asyncio.create_task(self._server.stop(grace + 2))
        if not await self._drain.idle(grace):
            self._drain.end()
            await self._drain.idle(_LAST_WORDS)
        await asyncio.wait([stopping], timeout=_LAST_BYTES)
        if not stopping.done():  # a health watcher, or a handler that will not end
            cutting = asyncio.create_task(self._server.stop(None))
            await asyncio.wait([cutting], timeout=_LAST_BYTES)
            stopping.cancel()
        log.info("stopped", address=self.address)

    async def wait(self) -> None:
        """Return when the server has stopped."""
        await self._server.wait_for_termination()

    async def unready(self) -> None:
        """Return when health says NOT_SERVING."""
        await self._pulse.unready.wait()


async def start(settings: ServerSettings, service: Service, *, ready: Ready) -> RunningServer:
    """Bind, serve, and ask ready for the first time.

    Raises BadListen, UnsafeListen (an address that others can reach, without a token: nothing is
    bound), and ListenFailed (the address is taken or not ours).
    """
    address = listen.parse(settings.listen)
    listen.check_safe(address, settings.service_token)
    server = grpc.aio.server(options=_options(settings))
    drain = Drain()
    _add(server, settings, service, drain)
    pulse = Pulse(service.name, ready, poll=settings.poll, timeout=settings.poll_timeout)
    await pulse.add_to(server)
    _add_the_rest(server, settings, service)
    bound = _bind(server, address)
    await server.start()
    await pulse.start()
    log.info("listening", address=str(bound), rpc_service=service.name)
    return RunningServer(server, drain, pulse, bound)


def _options(settings: ServerSettings) -> tuple[tuple[str, int | str], ...]:
    return (
        *server_options(settings.keepalive),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.so_reuseport", int(settings.reuse_port)),
    )


def _around(service: Service) -> tuple[Interceptor, ...]:
    return with_request_id, observed, errors(service.failure_of, service.domain)


def _add(server: grpc.aio.Server, settings: ServerSettings, service: Service, drain: Drain) -> None:
    around = _around(service)
    authorized = token(settings.service_token)
    service.add(service.servicer, Registrar(server, (*around, drain.intercept, authorized)))
    names = (service.name, health.SERVICE_NAME, reflection.SERVICE_NAME)
    add_reflection: Any = reflection_pb2_grpc.add_ServerReflectionServicer_to_server
    add_reflection(
        reflection.aio.ReflectionServicer(names), Registrar(server, (*around, authorized))
    )


def _add_the_rest(server: grpc.aio.Server, settings: ServerSettings, service: Service) -> None:
    interceptors = (*_around(service), token(settings.service_token))
    server.add_generic_rpc_handlers([UnknownMethods(interceptors)])


def _bind(server: grpc.aio.Server, address: listen.Tcp | listen.Unix) -> listen.Tcp | listen.Unix:
    if isinstance(address, listen.Unix) and _answers(address.path):
        # gRPC would unlink the socket of the other server
        message = f"cannot listen on {address}: another process listens there"
        raise listen.ListenFailed(message)
    try:
        port = server.add_insecure_port(str(address))
    except RuntimeError:
        message = f"cannot listen on {address}: it is taken by another process, or not ours"
        raise listen.ListenFailed(message) from None
    return address if isinstance(address, listen.Unix) else listen.Tcp(address.host, port)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
