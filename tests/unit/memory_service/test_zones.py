from datetime import UTC, datetime, timedelta

import pytest

from memory_service.domain.zones import is_zone, local_time

NOON = datetime(2026, 5, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 0), ("Asia/Shanghai", 8), ("+08:00", 8), ("-03:30", -3.5), ("America/New_York", -4)],
)
def test_a_zone_is_a_name_or_an_offset(zone: str, hours: float) -> None:
    assert is_zone(zone)
    local = local_time(NOON, zone)
    assert local == NOON
    assert local.utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Base", "America", "+8:00", "+24:00", "+08:60", "08:00", "../etc/passwd", "/etc"],
)
def test_anything_else_is_none_and_counts_as_utc(zone: str) -> None:
    assert not is_zone(zone)
    assert local_time(NOON, zone).utcoffset() == timedelta(0)


def test_a_time_without_a_zone_is_utc_and_no_day_is_too_early_or_late() -> None:
    assert local_time(NOON.replace(tzinfo=None), "+01:00") == NOON
    for edge in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        for zone in ("+08:00", "-08:00"):
            assert local_time(edge, zone) == edge
