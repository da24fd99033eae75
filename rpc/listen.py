"""Addresses that a process may listen on."""

import ipaddress
from dataclasses import dataclass, replace

_MAX_PORT = 65535


class BadListen(ValueError):
    """Not an address to listen on."""


class UnsafeListen(ValueError):
    """An address that others can reach, and no token that keeps them out."""


class ListenFailed(OSError):
    """The address cannot be had, mostly because another process has it."""


@dataclass(frozen=True, slots=True)
class Tcp:
    """An IP address or host name, without brackets, and a port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Unix:
    """The path of a unix socket."""

    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


def parse(listen: str) -> Tcp | Unix:
    """Read host:port, [IPv6]:port, :port (every address) or unix:path.

    localhost is 127.0.0.1: gRPC would take both of its addresses, and be content with one of them
    when the other belongs to another server. Raises BadListen.
    """
    if listen.startswith("unix:"):
        path = listen.removeprefix("unix:").removeprefix("//")
        if not path:
            _refuse(listen)
        return Unix(path)
    host, colon, port = listen.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > _MAX_PORT:
        _refuse(listen)
    if ":" in host and not bracketed:
        _refuse(listen)
    host = host[1:-1] if bracketed else host
    return Tcp({"localhost": "127.0.0.1", "": "::"}.get(host, host), int(port))


def is_private(address: Tcp | Unix) -> bool:
    """Say whether only this machine can reach the address."""
    if isinstance(address, Unix):
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:  # a name may resolve to anything
        return False


def check_safe(address: Tcp | Unix, service_token: str) -> None:
    """Raise UnsafeListen for an address that others can reach, unless a token is set."""
    if not service_token and not is_private(address):
        message = (
            f"refusing to listen on {address} without a service token: "
            "set one, or listen on 127.0.0.1"
        )
        raise UnsafeListen(message)


def shifted(address: Tcp, by: int) -> Tcp:
    """Give the address that many ports higher; port 0 stays 0."""
    return replace(address, port=address.port + by if address.port else 0)


def _refuse(listen: str) -> None:
    message = f"{listen!r} is not an address to listen on: give host:port, [IPv6]:port or unix:path"
    raise BadListen(message)
