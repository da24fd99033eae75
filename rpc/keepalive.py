"""Keepalive of server and client in one place, so that one never pings more than the other allows.

The client pings a silent connection each interval, also without a call; the server allows pings
five times as often, which leaves room for jitter and for other clients; both give a peer up that
does not answer within the timeout. gRPC's clients ping at most once a second.
"""

from dataclasses import dataclass

Options = tuple[tuple[str, int | str], ...]
_PINGS_ALLOWED_PER_INTERVAL = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Keepalive:
    """Seconds between pings of a silent connection, and until a silent peer counts as gone."""

    interval: float = 30.0
    timeout: float = 10.0


def server_options(keepalive: Keepalive) -> Options:
    """Give what a server needs to live with clients of the same keepalive."""
    allowed = int(keepalive.interval * 1000 / _PINGS_ALLOWED_PER_INTERVAL)
    return (*_both(keepalive), ("grpc.http2.min_ping_interval_without_data_ms", allowed))


def client_options(keepalive: Keepalive) -> Options:
    """Give what a client needs to live with a server of the same keepalive."""
    return _both(keepalive)


def _both(keepalive: Keepalive) -> Options:
    return (
        ("grpc.keepalive_time_ms", int(keepalive.interval * 1000)),
        ("grpc.keepalive_timeout_ms", int(keepalive.timeout * 1000)),
        # without this a ping may stay unanswered for a minute whatever the line above says
        ("grpc.http2.ping_timeout_ms", int(keepalive.timeout * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )
