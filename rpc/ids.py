"""Ids and time, given to the rooms that must not make their own."""

from datetime import UTC, datetime

from uuid_utils import uuid7


def new_id() -> str:
    """Give a UUIDv7: sorts by time, and in this process in the order of the calls (RFC 9562)."""
    return str(uuid7())


def utc_now() -> datetime:
    """Give the time, aware and in UTC."""
    return datetime.now(UTC)
