"""Logs and metrics of a process: events on stderr, Prometheus over HTTP."""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from prometheus_client import start_http_server
from structlog.typing import Processor

from rpc.listen import BadListen, Tcp, check_safe, parse, shifted


def configure_logging(service: str, level: str = "INFO", json: bool = False) -> None:  # noqa: FBT001, FBT002 - read from settings by name
    """Send all logs of this process to stderr: our events and those of the libraries alike.

    Each line carries the service, the level, the time in UTC, and what is bound to the task
    (request_id). Exceptions are rendered without the values of local variables, which may hold
    memory text. Raises ValueError for a level that logging does not know.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _named(service),
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.PositionalArgumentsFormatter(),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendered(json=json),
            ],
        )
    )
    root = logging.getLogger()
    root.setLevel(level.upper())
    root.handlers[:] = [handler]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _named(service: str) -> Processor:
    def add(_logger: Any, _method: str, event: Any) -> Any:
        event.setdefault("service", service)
        return event

    return add


def _rendered(*, json: bool) -> list[Processor]:
    if not json:
        return [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return [
        structlog.processors.ExceptionRenderer(frames),
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]


@dataclass(frozen=True, slots=True)
class Metrics:
    """A running /metrics endpoint; port is 0 where there is none."""

    port: int
    close: Callable[[], None]


def start_metrics(listen: str, *, service_token: str, worker: int = 0) -> Metrics:
    """Serve Prometheus metrics of this process at http://<listen>/metrics; "" means not at all.

    Workers of one service each have their own: worker n listens n ports higher. Scrapers send no
    token; that the service has one says that others may reach this machine at all. Raises
    UnsafeListen for an address that others can reach without it, BadListen for one that is none,
    OSError for one that is taken.
    """
    if not listen:
        return Metrics(0, lambda: None)
    address = parse(listen)
    if not isinstance(address, Tcp):
        message = f"metrics are served over TCP, not at {listen}"
        raise BadListen(message)
    check_safe(address, service_token)
    address = shifted(address, worker)
    server, thread = start_http_server(address.port, address.host)

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Metrics(server.server_port, close)
