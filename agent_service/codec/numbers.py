"""Numbers that must fit the wire."""

INT32_MAX = 2**31 - 1


def int32(count: int) -> int:
    """Give a count, at most the int32 maximum."""
    return min(count, INT32_MAX)
