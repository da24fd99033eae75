"""Words that several ports share."""

from collections.abc import Callable
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Unit length, one dimension; a matrix of them has one row per text."""

Clock = Callable[[], datetime]
"""Gives now, aware and in UTC."""

NewId = Callable[[], str]
"""Gives an id that sorts after those given before in this process and is never used twice."""
