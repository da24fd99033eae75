"""Reading a turn: which of the user's statements are kept, and as what."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import chain

from memory_service.domain.dates.mention import Mention
from memory_service.domain.dates.resolve import end_of_day, mentions, with_note
from memory_service.domain.ingest import (
    IMPORTANCE,
    Extraction,
    Fact,
    Intent,
    Turn,
    TurnMessage,
)
from memory_service.domain.model import (
    MemoryType,
    Role,
)
from memory_service.domain.rules.rule import Rule, rule
from memory_service.domain.rules.sensitivity import sensitivity_level
from memory_service.domain.rules.sentences import PASTED_FROM, own_sentences
from memory_service.domain.rules.statement import (
    LANGUAGES,
    Statement,
    Wish,
    forgets,
    is_question,
    is_task,
    is_task_on_text,
    pretends,
    says_enough,
    splits,
    statement_of,
)
from memory_service.domain.text import normalize
from memory_service.domain.zones import local_time

MOST_FACTS = 20
"""Facts that are read out of a turn; which of them are kept, domain.drafts says."""
GRACE = timedelta(hours=12)
"""How long a to-do stays after the end of its day."""

_WISHED_CONFIDENCE = 0.95
_WISHED_IMPORTANCE = 0.8
_REMEMBERED = rule(MemoryType.FACT, _WISHED_CONFIDENCE, "")
_TO_REMIND = rule(MemoryType.TODO_HINT, _WISHED_CONFIDENCE, "")
_EVERY_YEAR = re.compile(r"\b(?:birthday|bday|anniversary)\b|生日|纪念日")
_INTENTS = {
    MemoryType.CONSTRAINT: Intent.STANDING_INSTRUCTION,
    MemoryType.PREFERENCE: Intent.PREFERENCE,
}


def read_turn(turn: Turn) -> Extraction:
    """Give the facts out of the user's own words, in their order, and the intent."""
    own = [message for message in turn.messages if message.role is Role.USER]
    facts: dict[tuple[MemoryType, str], Fact] = {}
    for fact in chain.from_iterable(map(_facts, own)):
        facts.setdefault((fact.memory_type, normalize(fact.content)), fact)
        if len(facts) == MOST_FACTS:
            break
    kept = tuple(facts.values())
    return Extraction(intent=_intent(own, kept), facts=kept)


def _facts(message: TurnMessage) -> Iterator[Fact]:
    sentences = list(own_sentences(message.content))
    if any(map(pretends, sentences)) or any(map(forgets, sentences)):
        return
    said = local_time(message.create_time, message.timezone)
    working = any(map(is_task, sentences))
    pasted = len(message.content) > PASTED_FROM
    for sentence in sentences:
        if is_task_on_text(sentence):
            return
        statement = statement_of(sentence)
        if statement is None or (pasted and statement.wish is Wish.NONE):
            continue
        yield from _facts_of(statement, said, working=working)


def _facts_of(statement: Statement, said: datetime, *, working: bool) -> Iterator[Fact]:
    """Read a statement, and apart from it what fits a rule of its own behind an `and`."""
    for head, tail in splits(statement):
        found = _rule(head, said.date(), working=working)
        if found and _rule(tail, said.date(), working=working):
            yield _fact(head, found, said)
            yield from _facts_of(tail, said, working=working)
            return
    if found := _rule(statement, said.date(), working=working) or _wished(statement):
        yield _fact(statement, found, said)


def _rule(statement: Statement, today: date, *, working: bool) -> Rule | None:
    """Give the first rule that fits."""
    wished = statement.wish is not Wish.NONE
    coming = any(mention.days.last >= today for mention in mentions(statement.folded, today))
    if statement.wish is Wish.REMIND:
        return _TO_REMIND
    for each in (each for language in LANGUAGES for each in language.rules):
        if each.standing and working and not (wished or each.explicit):
            continue
        if (each.dated and not coming) or (each.wished and not wished):
            continue
        if each.words.match(statement.text if each.as_written else statement.folded):
            return each
    return None


def _wished(statement: Statement) -> Rule | None:
    """Give the rule for what the user wished to keep although no other fits."""
    if statement.wish is Wish.NONE or not says_enough(statement):
        return None
    return _REMEMBERED


def _fact(statement: Statement, found: Rule, said: datetime) -> Fact:
    named: Sequence[Mention] = mentions(statement.folded, said.date())
    wished = statement.wish is not Wish.NONE
    planned = found.memory_type is MemoryType.TODO_HINT
    if _EVERY_YEAR.search(statement.folded) or found.standing:
        named = ()
    named = [mention for mention in named if planned or not mention.bare]
    due = max((mention.days.last for mention in named), default=None) if planned else None
    importance = IMPORTANCE[found.memory_type]
    return Fact(
        memory_type=found.memory_type,
        content=with_note(statement.text, named),
        confidence=max(found.confidence, _WISHED_CONFIDENCE) if wished else found.confidence,
        importance=max(importance, _WISHED_IMPORTANCE) if wished else importance,
        sensitivity_level=sensitivity_level(statement.text),
        is_explicit=wished or found.explicit or statement.corrects,
        expire_time=end_of_day(due, said) + GRACE if due else None,
    )


def _intent(own: Sequence[TurnMessage], facts: Sequence[Fact]) -> Intent:
    """Give what the first fact says, else what the sentences ask for."""
    if facts:
        return _INTENTS.get(facts[0].memory_type, Intent.PERSONAL_FACT)
    sentences = [sentence for message in own for sentence in own_sentences(message.content)]
    if any(map(is_task, sentences)):
        return Intent.TASK_REQUEST
    return Intent.KNOWLEDGE_QA if any(map(is_question, sentences)) else Intent.CHITCHAT
