"""What becomes of a fact, once it is known what it is to the memories that are there.

Pure aggregation, best candidates first: any duplicate → nothing new; else the best update; else
conflicts make way for it; else it is new. An explicit memory never gives way to an implicit fact:
- in conflict with it, the fact is not stored at all (NONE, conflict). Two memories that contradict
  each other would both be recalled, and the user's own word is the one that counts.
- as an update of it, the fact stands beside it as a memory of its own. The two agree, so nothing is
  wrong, and nothing that was said is lost. What is said later updates that one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory_service.domain.drafts import LONGEST_CONTENT
from memory_service.domain.ingest import (
    Action,
    Candidate,
    Decision,
    Judgement,
    Reason,
    Relation,
)
from memory_service.domain.model import Memory, MemoryStatus, MemoryType
from memory_service.domain.secrets import holds_secret
from memory_service.domain.text import content_hash, default_title, normalize
from memory_service.domain.write import later_expiry

UNKNOWN_TARGET = "unknown_target"
"""Warning: a judgement named a memory that was not offered."""
INVALID_UPDATE = "invalid_update"
"""Warning: the merged text of an update cannot be used; the candidate counts as unrelated."""

_TOGETHER = frozenset({MemoryType.CONSTRAINT, MemoryType.PREFERENCE})


@dataclass(frozen=True, slots=True)
class Offer:
    """A memory that a fact may be compared with, and how alike they are, in 0..1."""

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """Who judged: model (empty: rules), and version of its prompts or of the rules."""

    model: str = ""
    version: str = ""


def is_comparable(fact: Memory, memory: Memory) -> bool:
    """Tell whether a memory is about what a fact is about, as far as scope and type say it.

    Settings that hide it do not matter. What was said word for word is never a candidate.
    """
    return (
        memory.status is MemoryStatus.ACTIVE
        and not memory.is_verbatim
        and memory.user_id == fact.user_id
        and (memory.assistant_id, memory.run_id) == (fact.assistant_id, fact.run_id)
        and (
            memory.memory_type is fact.memory_type
            or {memory.memory_type, fact.memory_type} == _TOGETHER
        )
    )


def same_hash(fact: Memory, equal: Memory) -> Decision:
    """Decide about a fact that an active memory says already, word for word."""
    return Decision(
        fact=replace(fact, memory_id=""),
        action=Action.NONE,
        reason=Reason.SAME_HASH,
        memory_id=equal.memory_id,
    )


def decide(
    fact: Memory, offers: Sequence[Offer], judgements: Sequence[Judgement], by: JudgedBy
) -> tuple[Decision, Sequence[str]]:
    """Decide about a fact that was compared with offers, best first; also give warnings.

    Of two judgements about one memory the first counts.
    """
    judged, warnings = _judged(fact, offers, judgements)
    decision = _aggregated(fact, judged)
    candidates = tuple(
        Candidate(memory_id=one.target.memory_id, score=one.score, relation=one.relation)
        for one in judged
    )
    return (
        replace(decision, candidates=candidates, model=by.model, prompt_version=by.version),
        warnings,
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """A candidate, and what the fact is to it; merged is the text of both, of an update."""

    target: Memory
    score: float
    relation: Relation
    merged: str = ""


def _judged(
    fact: Memory, offers: Sequence[Offer], judgements: Sequence[Judgement]
) -> tuple[Sequence[_Judged], Sequence[str]]:
    offered = {offer.memory.memory_id for offer in offers}
    first: dict[str, Judgement] = {}
    warnings: list[str] = []
    for judgement in judgements:
        if judgement.memory_id in offered:
            first.setdefault(judgement.memory_id, judgement)
        else:
            warnings.append(UNKNOWN_TARGET)
    judged: list[_Judged] = []
    for offer in offers:
        relation, merged = _relation(fact, offer.memory, first)
        if relation is Relation.UPDATE and not _usable(merged):
            warnings.append(INVALID_UPDATE)
            relation = Relation.UNRELATED
        judged.append(_Judged(offer.memory, offer.score, relation, merged))
    return judged, warnings


def _relation(
    fact: Memory, target: Memory, judgements: Mapping[str, Judgement]
) -> tuple[Relation, str]:
    """Give what was judged; equal words are a duplicate whatever was judged."""
    if target.normalized_content == fact.normalized_content:
        return Relation.DUPLICATE, ""
    judgement = judgements.get(target.memory_id)
    if judgement is None:
        return Relation.UNRELATED, ""
    adds_nothing = normalize(judgement.merged) == target.normalized_content
    if judgement.relation is Relation.UPDATE and adds_nothing:
        return Relation.DUPLICATE, ""
    return judgement.relation, judgement.merged


def _usable(merged: str) -> bool:
    return (
        normalize(merged) != ""
        and "\0" not in merged
        and len(merged) <= LONGEST_CONTENT
        and not holds_secret(merged)
    )


def _aggregated(fact: Memory, judged: Sequence[_Judged]) -> Decision:
    read = replace(fact, memory_id="")
    duplicate = _best(judged, Relation.DUPLICATE)
    if duplicate:
        return Decision(
            fact=read,
            action=Action.NONE,
            reason=Reason.DUPLICATE,
            memory_id=duplicate.target.memory_id,
        )
    conflicts = [one.target for one in judged if one.relation is Relation.CONFLICT]
    if not all(_gives_way(target, fact) for target in conflicts):
        return Decision(fact=read, action=Action.NONE, reason=Reason.CONFLICT)
    update = _best([one for one in judged if _gives_way(one.target, fact)], Relation.UPDATE)
    if update:
        return Decision(
            fact=updated(update.target, update.merged, fact),
            action=Action.UPDATE,
            reason=Reason.UPDATE,
            memory_id=update.target.memory_id,
        )
    return Decision(
        fact=fact,
        action=Action.ADD,
        reason=Reason.CONFLICT if conflicts else Reason.NEW,
        memory_id=fact.memory_id,
        superseded_ids=tuple(target.memory_id for target in conflicts),
    )


def _best(judged: Sequence[_Judged], relation: Relation) -> _Judged | None:
    return next((one for one in judged if one.relation is relation), None)


def _gives_way(target: Memory, fact: Memory) -> bool:
    return fact.is_explicit or not target.is_explicit


def updated(memory: Memory, merged: str, fact: Memory) -> Memory:
    """Give the memory with the merged text, at the fact's time.

    It was said again: the later expiry counts, explicit if either was. It is as sensitive as the
    more sensitive of the two. A title that the content gave follows it. All else stays.
    """
    by_content = memory.title == default_title(memory.content)
    return replace(
        memory,
        title=default_title(merged) if by_content else memory.title,
        content=merged,
        normalized_content=normalize(merged),
        content_hash=content_hash(memory.memory_type, merged),
        sensitivity_level=max(memory.sensitivity_level, fact.sensitivity_level),
        is_explicit=memory.is_explicit or fact.is_explicit,
        expire_time=later_expiry(memory, fact),
        update_time=fact.update_time,
        version=memory.version + 1,
    )
