"""What time it was where somebody spoke."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")


def is_zone(zone: str) -> bool:
    """Tell whether that is a zone: an IANA name, or an offset such as +08:00."""
    return _found(zone) is not None


def local_time(time: datetime, zone: str) -> datetime:
    """Give time in zone: an IANA name, or an offset such as +08:00; UTC for any other text.

    A time without a zone is UTC.
    """
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    try:
        return aware.astimezone(_found(zone) or UTC)
    except OverflowError:  # the first or last day that a datetime can hold
        return aware


def _found(zone: str) -> tzinfo | None:
    if offset := _OFFSET.fullmatch(zone):
        sign, hours, minutes = offset.groups()
        size = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(size if sign == "+" else -size)
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown, no name at all, a folder of names
        return None
