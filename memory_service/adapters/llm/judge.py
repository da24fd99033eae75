"""ports.RelationJudge over a language model."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from memory_service.adapters.llm import failures
from memory_service.adapters.llm.chat_model import Answer, ChatModel
from memory_service.adapters.llm.judge_prompt import VERSION, judge_prompt
from memory_service.domain.errors import ModelUnreadable
from memory_service.domain.ingest import Fact, Judgement, Relation
from memory_service.domain.loose_json import read_json
from memory_service.domain.model import Memory
from memory_service.domain.support import supports, words_of

_NUMBER = re.compile("[0-9]{1,3}")
_UNREAD = "the model's answer holds no relation that can be read"

_log = structlog.get_logger(__name__)


class LlmJudge:
    """Implements ports.RelationJudge. Without candidates nobody is asked."""

    version = VERSION

    def __init__(self, model: ChatModel) -> None:
        self.model = model.name
        self._model = model

    async def relate(self, fact: Fact, candidates: Sequence[Memory]) -> Sequence[Judgement]:
        """Keep the promise of RelationJudge.relate."""
        if not candidates:
            return []
        answer = await self._model.ask(judge_prompt(fact, candidates))
        return read_judgements(answer, fact, candidates)


def read_judgements(
    answer: Answer, fact: Fact, candidates: Sequence[Memory]
) -> Sequence[Judgement]:
    """Give the judgements of an answer, the first for each memory; an unknown one is `#…`.

    An item without a known relation is passed over. A merged text that does not rest on both texts
    is left out. Raises ModelUnreadable if no item can be
    read, or if the answer ended before each candidate had one: what was not reached must not count
    as unrelated.
    """
    reading = read_json(answer.text, ("relations",))
    value = reading.value
    items = value if isinstance(value, list) else value["relations"]
    rows = [_fields(item) for item in items] if isinstance(items, list) else [{}]
    related = [(row, relation) for row in rows if (relation := _relation(row))]
    if len(related) < len(rows):
        _log.warning("judgements_passed_over", count=len(rows) - len(related))
        if not related:
            raise ModelUnreadable(_UNREAD)
    judgements: dict[str, Judgement] = {}
    for row, relation in related:
        judgement = _judgement(row, relation, fact, candidates)
        judgements.setdefault(judgement.memory_id, judgement)
    if not reading.whole and any(each.memory_id not in judgements for each in candidates):
        raise ModelUnreadable(failures.CUT_OFF)
    return list(judgements.values())


def _fields(item: Any) -> Mapping[str, Any]:
    return item if isinstance(item, Mapping) else {}


def _relation(row: Mapping[str, Any]) -> Relation | None:
    word = row.get("relation")
    name = word.strip().lower() if isinstance(word, str) else ""
    return Relation(name) if name in set(Relation) else None


def _judgement(
    row: Mapping[str, Any], relation: Relation, fact: Fact, candidates: Sequence[Memory]
) -> Judgement:
    number = _number(row.get("number"))
    if number is None or number >= len(candidates):
        name = "#?" if number is None else f"#{number}"
        return Judgement(memory_id=name, relation=relation)
    memory = candidates[number]
    if relation is not Relation.UPDATE:
        return Judgement(memory_id=memory.memory_id, relation=relation)
    text = row.get("merged")
    merged = text.strip() if isinstance(text, str) else ""
    if not all(supports(words_of([text]), merged) for text in (fact.content, memory.content)):
        merged = ""  # a translation, or made up
    return Judgement(memory_id=memory.memory_id, relation=relation, merged=merged)


def _number(value: Any) -> int | None:
    """Give the number of a memory, also one that stands as a text; None for what is none."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if _NUMBER.fullmatch(text) else None
