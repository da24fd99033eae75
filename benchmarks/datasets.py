"""Data sets for measuring retrieval, read from paths: LoCoMo, fact files, Chinese dialogues.

None of them is part of the project; docs/benchmarks.md says how to get them. One store is one
user's memories with the questions asked of them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
LOCOMO_CATEGORIES = {
    1: "several hops",
    2: "time",
    3: "open domain",
    4: "single hop",
    5: "adversarial",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One memory to store; key names it inside its store."""

    key: str
    content: str
    conversation_id: str = ""
    speaker: str = ""
    occur_time: datetime | None = None

    @property
    def verbatim(self) -> bool:
        """Tell whether it is a turn, word for word."""
        return bool(self.speaker)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the keys of the rows that answer it."""

    text: str
    answers: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Store:
    """One user's memories and the questions asked of them."""

    dataset: str
    name: str
    rows: list[Row]
    questions: list[Question]


def load(paths: list[Path]) -> list[Store]:
    """Read every data set below the paths, and join fact files in two languages as `mixed`."""
    stores = [store for path in paths for store in _load(path)]
    facts = {store.dataset: store for store in stores}
    if {"facts en", "facts zh"} <= facts.keys():
        english, chinese = facts["facts en"], facts["facts zh"]
        rows = english.rows + chinese.rows
        questions = english.questions + chinese.questions
        stores.append(Store("facts mixed", "mixed", rows, questions))
    return stores


def _load(path: Path) -> Iterator[Store]:
    if path.is_dir():
        for child in sorted(path.iterdir()):
            yield from _load(child)
    elif path.suffix == ".json":
        yield _locomo(path)
    elif path.suffix == ".tsv":
        text = path.read_text(encoding="utf-8")
        yield _dialogue(path, text) if text.startswith("S\t") else _facts(path, text)


def _facts(path: Path, text: str) -> Store:
    pairs = [line.split("\t")[:2] for line in text.splitlines() if "\t" in line]
    rows = [Row(f"{path.stem}{number}", fact) for number, (fact, _) in enumerate(pairs)]
    questions = [
        Question(question, frozenset([row.key]), "fact")
        for row, (_, question) in zip(rows, pairs, strict=True)
    ]
    return Store(f"facts {path.stem}", path.stem, rows, questions)


def _dialogue(path: Path, text: str) -> Store:
    rows: list[Row] = []
    questions: list[Question] = []
    session = 0
    start = datetime(2024, 1, 1, tzinfo=UTC)
    for line in text.splitlines():
        kind, _, rest = line.partition("\t")
        if kind == "S":
            session += 1
            start = _chinese_time(rest)
        elif kind == "Q":
            question, numbers = rest.split("\t")
            answers = frozenset(re.findall(r"\d+", numbers))
            questions.append(Question(question, answers, "dialogue"))
        elif rest:
            number = len(rows) + 1
            when = start + timedelta(seconds=number)
            rows.append(Row(str(number), rest, f"session {session}", kind, when))
    return Store("zh turns", path.parent.name, rows, questions)


def _chinese_time(text: str) -> datetime:
    year, month, day, hour, minute = (int(number) for number in re.findall(r"\d+", text)[:5])
    if "下午" in text or "晚上" in text:
        hour = hour % 12 + 12
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def _locomo(path: Path) -> Store:
    data = json.loads(path.read_text(encoding="utf-8"))
    talk = data.get("conversation", data)
    rows: list[Row] = []
    number = 1
    while f"session_{number}" in talk:
        session = f"session_{number}"
        time = datetime.strptime(talk[f"{session}_date_time"], LOCOMO_TIME).replace(tzinfo=UTC)
        for place, turn in enumerate(talk[session]):
            caption = turn.get("blip_caption")
            note = f" [shares an image: {caption}]" if caption else ""
            when = time + timedelta(seconds=place)
            rows.append(Row(turn["dia_id"], turn["text"] + note, session, turn["speaker"], when))
        number += 1
    keys = {row.key for row in rows}
    questions = []
    for entry in data["qa"]:
        named = re.findall(r"D\d+:\d+", " ".join(entry.get("evidence", [])))
        answers = frozenset(keys & set(named))
        if answers:
            category = LOCOMO_CATEGORIES[entry["category"]]
            questions.append(Question(entry["question"], answers, category))
    return Store("locomo", path.stem, rows, questions)
