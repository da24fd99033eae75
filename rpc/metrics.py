"""Prometheus metrics of our RPCs, by the names that gRPC dashboards know."""

from dataclasses import dataclass
from functools import cache

from prometheus_client import Counter, Gauge, Histogram

_LABELS = ("grpc_type", "grpc_service", "grpc_method")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
STARTED = Counter("grpc_server_started", "RPCs begun", _LABELS)
HANDLED = Counter("grpc_server_handled", "RPCs ended, by code", (*_LABELS, "grpc_code"))
SECONDS = Histogram("grpc_server_handling_seconds", "How long RPCs took", _LABELS, buckets=_BUCKETS)
IN_FLIGHT = Gauge("grpc_server_in_flight", "RPCs running now", _LABELS)


@dataclass(frozen=True, slots=True)
class Meter:
    """The metrics of one method."""

    labels: tuple[str, str, str]
    begun: Counter
    seconds: Histogram
    in_flight: Gauge

    def started(self) -> None:
        """Count a call that begins."""
        self.begun.inc()
        self.in_flight.inc()

    def handled(self, code: str, seconds: float) -> None:
        """Count a call that ended with this code after so many seconds."""
        HANDLED.labels(*self.labels, code).inc()
        self.seconds.observe(seconds)
        self.in_flight.dec()


@cache  # looking metrics up by label is slow; the methods of a server are few
def meter_of(method: str, kind: str) -> Meter:
    """Give the metrics of "/package.Service/Method" of this kind."""
    _, service, name = method.split("/", 2)
    labels = (kind, service, name)
    return Meter(
        labels, STARTED.labels(*labels), SECONDS.labels(*labels), IN_FLIGHT.labels(*labels)
    )
