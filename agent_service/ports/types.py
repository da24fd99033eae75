"""Time and ids, which come from outside."""

from collections.abc import Callable
from datetime import datetime

Clock = Callable[[], datetime]
"""Gives now, aware and in UTC."""

NewId = Callable[[], str]
"""Gives an id that sorts after those given before in this process and is never used twice."""
