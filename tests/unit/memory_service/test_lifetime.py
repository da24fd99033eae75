"""When a memory's time is over."""

from datetime import timedelta

import pytest

from memory_service.domain.lifetime import End, end_of
from tests.builders.memories import NOW, memory

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("left", "age", "retention", "end"),
    [
        (None, 100 * SECOND, None, None),
        (SECOND, SECOND, None, None),
        (0 * SECOND, SECOND, None, End.EXPIRED),
        (-SECOND, SECOND, 9 * SECOND, End.EXPIRED),
        (None, 8 * SECOND, 9 * SECOND, None),
        (None, 9 * SECOND, 9 * SECOND, End.RETENTION),
        (SECOND, 10 * SECOND, 9 * SECOND, End.RETENTION),
        (None, -SECOND, SECOND, None),
    ],
)
def test_it_ends_at_its_expiry_or_at_the_retention_since_its_last_change(
    left: timedelta | None, age: timedelta, retention: timedelta | None, end: End | None
) -> None:
    row = memory(expire_time=None if left is None else NOW + left, age=age)
    assert end_of(row, now=NOW, retention=retention) is end
