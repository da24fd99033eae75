"""How well facts are read out of turns: precision and recall on two fixed bilingual sets.

python -m benchmarks.extraction [--set fixed|held_out] [--json] [--misses]
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memory_service.adapters.extractor_rules import RulesExtractor
from memory_service.domain.ingest import (
    Fact,
    Turn,
    TurnMessage,
)
from memory_service.domain.model import Role
from memory_service.ports.learning import FactExtractor

FOLDER = Path(__file__).parent / "data"
SETS = {"fixed": "extraction", "held_out": "extraction_held_out"}
LANGUAGES = ("en", "zh")
SAID = datetime.fromisoformat("2024-03-13T09:30:00+08:00")
ZONE = "Asia/Shanghai"
NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a user says, the types of facts in it (`!`: said to be remembered), and their words."""

    text: str
    expected: tuple[str, ...]
    must: tuple[str, ...]
    must_not: tuple[str, ...]

    @property
    def turn(self) -> Turn:
        """Give the words as a turn that was said on a Wednesday morning in Shanghai."""
        message = TurnMessage(role=Role.USER, content=self.text, create_time=SAID, timezone=ZONE)
        return Turn(user_id="u", conversation_id="c", messages=(message,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was read out of a case: types that are right, read wrongly, and missed."""

    case: Case
    facts: tuple[Fact, ...]
    right: Counter[str]
    wrong: Counter[str]
    missed: Counter[str]


def cases(which: str, language: str) -> Iterator[Case]:
    """Read one file: expected types, words that must and must not be in the content, the text."""
    path = FOLDER / f"{SETS[which]}_{language}.tsv"
    for line in path.read_text(encoding="utf-8").splitlines():
        expected, must, must_not, text = line.split("\t")
        yield Case(
            text=text.replace("\\n", "\n"),
            expected=() if expected == NOTHING else tuple(expected.split(",")),
            must=_words(must),
            must_not=_words(must_not),
        )


def _words(column: str) -> tuple[str, ...]:
    return () if column == "-" else tuple(column.split(";"))


async def judge(extractor: FactExtractor, case: Case) -> Result:
    """Read a case. A fact is right if its type and its mark are; none is if words are wrong."""
    facts = (await extractor.extract(case.turn)).facts
    contents = "\n".join(fact.content for fact in facts)
    expected = Counter(case.expected)
    read = Counter(f"{fact.memory_type}{'!' * fact.is_explicit}" for fact in facts)
    wordy = all(word in contents for word in case.must)
    wordy = wordy and not any(word in contents for word in case.must_not)
    right = expected & read if wordy else Counter[str]()
    return Result(case=case, facts=facts, right=right, wrong=read - right, missed=expected - right)


def figures(results: Sequence[Result]) -> dict[str, dict[str, float | int]]:
    """Give precision, recall and the counts behind them, for all and for each type."""
    found: dict[str, dict[str, float | int]] = {}
    for kind in ("all", "constraint", "preference", "fact", "todo_hint"):
        right, wrong, missed = (
            sum(
                n for each in counted for key, n in each.items() if kind in {"all", key.rstrip("!")}
            )
            for counted in zip(*((r.right, r.wrong, r.missed) for r in results), strict=True)
        )
        found[kind] = {
            "precision": right / (right + wrong) if right + wrong else 1.0,
            "recall": right / (right + missed) if right + missed else 1.0,
            "right": right,
            "wrong": wrong,
            "missed": missed,
        }
    return found


async def measure(extractor: FactExtractor, which: str) -> dict[str, list[Result]]:
    """Judge every case of a set, by language."""
    return {
        language: [await judge(extractor, case) for case in cases(which, language)]
        for language in LANGUAGES
    }


def _print(which: str, language: str, results: Sequence[Result], *, misses: bool) -> None:
    silent = [result for result in results if not result.case.expected]
    noisy = sum(bool(result.facts) for result in silent)
    print(f"{which}, {language}: {len(results)} turns")
    print(f"  {len(silent)} say nothing to keep, {noisy} of these were read all the same")
    print("  type         precision  recall   right  wrong  missed")
    for kind, row in figures(results).items():
        print(
            f"  {kind:12} {row['precision']:9.3f} {row['recall']:7.3f}"
            f" {row['right']:7} {row['wrong']:6} {row['missed']:7}"
        )
    for result in results if misses else ():
        if result.wrong or result.missed:
            read = [
                f"{fact.memory_type}{'!' * fact.is_explicit}: {fact.content}"
                for fact in result.facts
            ]
            print(
                f"    {','.join(result.case.expected) or NOTHING} | {result.case.text!r} -> {read}"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.extraction", description=__doc__)
    parser.add_argument("--set", choices=SETS, action="append", help="default: both")
    parser.add_argument("--misses", action="store_true", help="print what was read wrongly")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    measured = {
        which: asyncio.run(measure(RulesExtractor(), which)) for which in options.set or SETS
    }
    if options.json:
        shown = {
            which: {language: figures(results) for language, results in by_language.items()}
            for which, by_language in measured.items()
        }
        print(json.dumps(shown, indent=2))
        return
    for which, by_language in measured.items():
        for language, results in by_language.items():
            _print(which, language, results, misses=options.misses)


if __name__ == "__main__":
    main()
