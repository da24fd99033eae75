"""No text makes the rules slow: their patterns are simple, and steps grow with the text."""

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest

from memory_service.domain import check_digits, dates, fold, rules, secrets
from memory_service.domain.dates.mention import Pattern
from memory_service.domain.ingest import Turn, TurnMessage
from memory_service.domain.model import Role
from memory_service.domain.rules.read import read_turn
from memory_service.domain.rules.rule import Language
from memory_service.domain.secrets import holds_secret

PARSER = importlib.import_module("re._parser")
CONSTANTS = importlib.import_module("re._constants")
REPEATS = {CONSTANTS.MAX_REPEAT, CONSTANTS.MIN_REPEAT, CONSTANTS.POSSESSIVE_REPEAT}
MODULES = [check_digits, fold, secrets] + [
    importlib.import_module(f"{package.__name__}.{found.name}")
    for package in (dates, rules)
    for found in pkgutil.iter_modules(package.__path__)
]


def patterns() -> Iterator[re.Pattern[str]]:
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, re.Pattern):
                yield value
            elif isinstance(value, Language):
                for name in Language.__dataclass_fields__:
                    part = getattr(value, name)
                    yield from (
                        (each.words for each in part) if isinstance(part, tuple) else (part,)
                    )
            elif isinstance(value, tuple) and value and isinstance(value[0], Pattern):
                yield from (each.words for each in value)


def inside(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """Walk through each part of a parsed pattern, and the parts in it."""
    if isinstance(parsed, PARSER.SubPattern):
        for step, arguments in parsed:
            yield step, arguments
            yield from inside(arguments)
    elif isinstance(parsed, list | tuple):
        for part in parsed:
            yield from inside(part)


def test_there_are_patterns_to_look_at() -> None:
    assert len(set(patterns())) > 80


@pytest.mark.parametrize("words", sorted({each.pattern for each in patterns()}))
def test_no_pattern_repeats_without_end_what_may_repeat(words: str) -> None:
    for step, arguments in inside(PARSER.parse(words)):
        if step in REPEATS and arguments[1] is CONSTANTS.MAXREPEAT:
            assert not any(within in REPEATS for within, _ in inside(arguments[2]))


def calls(work: Any) -> int:
    """Count what Python calls during work, functions of the interpreter too."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


def turn(*texts: str) -> Turn:
    said = datetime(2024, 3, 13, tzinfo=UTC)
    messages = tuple(TurnMessage(role=Role.USER, content=t, create_time=said) for t in texts)
    return Turn(user_id="u", conversation_id="c", messages=messages)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "我",
        "I like tea. ",
        "I like tea and I like ",
        "我喜欢茶，我喜欢",
        "Remember that ",
        "please " * 5,
        '"',
        '". ',
        "...",
        "1 ",
        "4111 ",
        "in 3 days ",
        "```\n",
        "> x\n",
        "password for a is ",
        "-eyJ",
        "\ud83d",
    ],
)
def test_steps_grow_with_the_text(piece: str) -> None:
    def steps(length: int) -> int:
        text = (piece * length)[:length]
        short = [text[start : start + 1_000] for start in range(0, length, 1_000)]
        return calls(lambda: (read_turn(turn(text, *short)), holds_secret(text)))

    steps(64)  # what is made at the first use is not counted
    assert steps(16_384) <= 2.5 * steps(8_192) + 1_000
