"""API keys in a file: who may use the gateway, and as whom.

A key is shown once, when it is made. The file holds SHA-256 of it: a key is 256 random bits, so
there is nothing to guess, and a slow hash would protect nothing more.
"""

import fcntl
import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from rpc.fields import MAX_ID_BYTES, id_problems

MODE = 0o600
_PREFIX = "msk_"
_VERSION = 1


class KeysUnreadable(Exception):
    """The file is there and is not one of keys; the text says where and why, in one line."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key: whose requests it makes; times in ISO 8601, UTC. revoke_time is "" while valid."""

    key_id: str
    user_id: str
    name: str
    sha256: str
    create_time: str
    revoke_time: str = ""


def digest(key: str) -> str:
    """Give what the file holds of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> tuple[ApiKey, ...]:
    """Read the file; one that does not exist holds no keys. Raises KeysUnreadable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        keys = tuple(ApiKey(**entry) for entry in content["keys"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"{path} is no readable file of API keys ({type(error).__name__})"
        raise KeysUnreadable(message) from None
    if not all(isinstance(value, str) for key in keys for value in asdict(key).values()):
        message = f"{path} holds a key with a value that is no text"
        raise KeysUnreadable(message)
    return keys


def create_key(path: Path, user_id: str, name: str, now: datetime) -> tuple[ApiKey, str]:
    """Add a key for a user, and give it with the secret, which nobody can read again.

    Raises ValueError for a user_id that the services would refuse, KeysUnreadable and OSError.
    """
    controls = any(unicodedata.category(character) == "Cc" for character in name)
    if controls or not user_id or id_problems(user_id):
        message = f"a user is 1..{MAX_ID_BYTES} bytes without control characters"
        raise ValueError(message)
    secret = _PREFIX + secrets.token_urlsafe(32)
    key = ApiKey(secrets.token_hex(6), user_id, name, digest(secret), _iso(now))
    with _alone(path):
        _write(path, (*read_keys(path), key))
    return key, secret


def revoke_key(path: Path, key_id: str, now: datetime) -> bool:
    """Make a key invalid; False if there is no such valid key. Raises as create_key."""
    with _alone(path):
        keys = read_keys(path)
        if not any(key.key_id == key_id and not key.revoke_time for key in keys):
            return False
        _write(
            path,
            [replace(k, revoke_time=_iso(now)) if k.key_id == key_id else k for k in keys],
        )
    return True


def _write(path: Path, keys: Sequence[ApiKey]) -> None:
    """Replace the file in one step: a reader sees the old one or the new one."""
    content = {"version": _VERSION, "keys": [asdict(key) for key in keys]}
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep two commands from losing each other's keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
