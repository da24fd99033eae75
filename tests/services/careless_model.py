"""A chat model that does as it is told and no more: what it says can be known beforehand.

It reports every line of a conversation as a fact, whoever said it, and copies an example on top;
asked for relations, it calls equal texts duplicates and all others unrelated, and names one memory
that nobody offered.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memory_service.adapters.llm.extract_examples import EXAMPLES
from tests.services.openai_server import Call, OpenAIServer, Script, answers, served


class CarelessModel(OpenAIServer):
    """Answers each call by what stands in it."""

    def take(self, call: Call) -> Script:
        super().take(call)
        data = call.body["messages"][1]["content"]
        rows = [json.loads(line) for line in data.splitlines() if line.startswith("{")]
        answer = _relations(rows) if "<memories>" in data else _facts(rows)
        return answers(json.dumps(answer, ensure_ascii=False))


def _facts(rows: list[dict[str, Any]]) -> dict[str, object]:
    said = [{"memory_type": "fact", "content": row["text"], "confidence": 0.8} for row in rows]
    return {"message_intent": "personal_fact", "facts": [*said, *EXAMPLES[0].facts]}


def _relations(rows: list[dict[str, Any]]) -> dict[str, object]:
    fact, *memories = rows
    judged: list[dict[str, object]] = [
        {"number": row["number"], "relation": _relation(row, fact)} for row in memories
    ]
    return {"relations": [*judged, {"number": 99, "relation": "duplicate"}]}


def _relation(row: dict[str, Any], fact: dict[str, Any]) -> str:
    return "duplicate" if row["text"] == fact["text"] else "unrelated"


@contextmanager
def careless_model() -> Iterator[CarelessModel]:
    """Serve it on loopback."""
    with served(CarelessModel()) as server:
        yield server
