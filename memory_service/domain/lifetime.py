"""When a memory's time is over."""

from datetime import datetime, timedelta
from enum import StrEnum

from memory_service.domain.model import Memory


class End(StrEnum):
    """Why a memory's time is over."""

    EXPIRED = "expired"
    RETENTION = "retention"


def end_of(memory: Memory, *, now: datetime, retention: timedelta | None) -> End | None:
    """Say why a memory's time is over; None while it is not.

    It ends at its expire_time, or once its last change is as old as the user's retention.
    """
    if memory.expire_time is not None and memory.expire_time <= now:
        return End.EXPIRED
    if retention is not None and now - memory.update_time >= retention:
        return End.RETENTION
    return None
