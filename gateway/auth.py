"""Who a caller is."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import structlog

from gateway.errors import Code, Refusal
from gateway.keys import ApiKey, KeysUnreadable, digest, read_keys
from rpc.errors import Failure

log = structlog.get_logger("gateway")
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Access(Protocol):
    """Decides who a caller is."""

    def user_of(self, headers: Mapping[str, str]) -> str:
        """Give the user; "" if the request itself may name any. Raises Refusal."""
        ...


class OpenAccess:
    """Everybody who reaches this machine's loopback address, as whoever they name.

    A page of another site reaches it too, through the visitor's browser: by a cross-site POST, or
    by a name of its own that resolves to 127.0.0.1. So Host must be a loopback name, and Origin, if
    any, the same as Host; hosts are further names, of a proxy in front.
    """

    def __init__(self, hosts: tuple[str, ...] = ()) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)

    def user_of(self, headers: Mapping[str, str]) -> str:
        """Give "". Raises Refusal 403 for a request that another site has made."""
        host, origin = headers.get("host", "").lower(), headers.get("origin", "")
        if host and not self._is_ours(_host(f"//{host}")[1]):
            text = "this Host is not allowed without authentication; see GATEWAY_ALLOWED_HOSTS"
            raise Refusal(Failure(Code.PERMISSION_DENIED, "FOREIGN_HOST", text))
        place, name = _host(origin)
        if origin and place != host and name not in self._hosts:
            text = "a page of another site must not call a gateway without authentication"
            raise Refusal(Failure(Code.PERMISSION_DENIED, "FOREIGN_ORIGIN", text))
        return ""

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name in self._hosts:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


class KeyAccess:
    """Everybody who has a key of the file, as the user of the key. The file is re-read on change.

    A file that cannot be read lets nobody in. Raises KeysUnreadable when there is a bad one at the
    start; none at all is allowed, for keys are made later.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _signature(path)
        self._keys = _by_digest(read_keys(path))

    def user_of(self, headers: Mapping[str, str]) -> str:
        """Give the key's user. Raises Refusal: 401, or 503 while the file cannot be read."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            text = "send a key: Authorization: Bearer …"
            raise Refusal(Failure(Code.UNAUTHENTICATED, "NO_API_KEY", text), headers=_CHALLENGE)
        found = self._current().get(digest(key.strip()))
        if found is None or found.revoke_time:
            text = "the key is unknown or revoked"
            raise Refusal(Failure(Code.UNAUTHENTICATED, "BAD_API_KEY", text), headers=_CHALLENGE)
        return found.user_id

    def _current(self) -> Mapping[str, ApiKey]:
        signature = _signature(self._path)
        if signature == self._seen:
            return self._keys
        try:
            self._keys = _by_digest(read_keys(self._path))
        except KeysUnreadable as error:
            log.error("api_keys_unreadable", error=str(error))  # noqa: TRY400 - its text is enough
            text = "keys cannot be checked now"
            raise Refusal(Failure(Code.UNAVAILABLE, "API_KEYS_UNREADABLE", text)) from None
        self._seen = signature
        log.info("api_keys_read", keys=len(self._keys))
        return self._keys


def _signature(path: Path) -> tuple[int, int, int]:
    """Tell one state of the file from another: each change is a new file."""
    try:
        state = path.stat()
    except OSError:
        return (0, 0, 0)
    return state.st_ino, state.st_mtime_ns, state.st_size


def _by_digest(keys: tuple[ApiKey, ...]) -> Mapping[str, ApiKey]:
    return {key.sha256: key for key in keys}


def _host(url: str) -> tuple[str, str]:
    """Give host:port and the host name of a URL, in lower case; empty if it is none."""
    try:
        parts = urlsplit(url)
        return parts.netloc.lower(), parts.hostname or ""
    except ValueError:
        return "", ""
