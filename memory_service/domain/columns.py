"""Columns of numbers, one entry per slot of a working set."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.generic)


def grown(column: NDArray[_Number], size: int) -> NDArray[_Number]:
    """Give a column that holds slots below size: the same one, or a longer copy ending in zeros."""
    if size <= len(column):
        return column
    longer = np.zeros(max(size, len(column) * 3 // 2, 64), column.dtype)
    longer[: len(column)] = column
    return longer
