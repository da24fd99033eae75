"""The parts of a statement that decide how it relates to another one."""

from dataclasses import dataclass, field
from enum import StrEnum


class Slot(StrEnum):
    """What is claimed. Of the first kind one value holds at a time, of the second any number."""

    HOME = "home"
    WORKPLACE = "workplace"
    OCCUPATION = "occupation"
    ADDRESSED = "addressed"
    AGE = "age"
    MARRIAGE = "marriage"
    DIET = "diet"
    LANGUAGE = "language"
    ATTRIBUTE = "attribute"
    """Of a thing that has one value, such as a birthday; the claim's about says which."""

    LIKES = "likes"
    ALLERGY = "allergy"
    SPEAKS = "speaks"

    PREFERS = "prefers"
    """One thing rather than another."""


MANY = frozenset({Slot.LIKES, Slot.ALLERGY, Slot.SPEAKS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One clause, words stemmed or stripped so that equal ones mean the same.

    words: all of them in order, without who says it and without negation. about: whose slot it is,
    and which attribute. values: what fills it; against: what it is preferred to; denied: those of
    them that are not liked at all (`tea, not coffee`). detail: what else is said about it.
    limited: it holds in some cases only, so nothing follows from it.
    """

    words: tuple[str, ...]
    negative: bool = False
    slot: Slot | None = None
    about: str = ""
    values: frozenset[str] = field(default_factory=frozenset)
    against: frozenset[str] = field(default_factory=frozenset)
    denied: frozenset[str] = field(default_factory=frozenset)
    detail: tuple[str, ...] = ()
    limited: bool = False
