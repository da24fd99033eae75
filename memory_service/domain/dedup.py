"""One candidate for each thing said: by id, then by content hash, then by rendered text."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory_service.domain.recall import Candidate, Dropped, DropReason
from memory_service.domain.text import rendered_text


def dedup(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Dropped]]:
    """Give the survivors in the order of the first of each kind, and what they stand for.

    Of two with one id the later survives; of two with one hash or text the more important, then
    the more confident, then the later. A survivor takes the union of the legs and the highest
    relevance with its parts, and is held back only if all it stands for were. No two survivors
    share an id, a hash (an empty one is none) or a text.
    """
    dropped: list[Dropped] = []
    survivors = _pass(candidates, _by_id, _later, DropReason.DUPLICATE_ID, dropped)
    survivors = _pass(survivors, _by_hash, _stronger, DropReason.DUPLICATE_HASH, dropped)
    survivors = _pass(survivors, _by_text, _stronger, DropReason.DUPLICATE_TEXT, dropped)
    return survivors, dropped


def _pass(
    candidates: Sequence[Candidate],
    key_of: Callable[[Candidate], str],
    second_survives: Callable[[Candidate, Candidate], bool],
    reason: DropReason,
    dropped: list[Dropped],
) -> list[Candidate]:
    places: dict[str, int] = {}
    survivors: list[Candidate] = []
    for candidate in candidates:
        key = key_of(candidate)
        place = places.setdefault(key, len(survivors)) if key else len(survivors)
        if place == len(survivors):
            survivors.append(candidate)
            continue
        first = survivors[place]
        pair = (candidate, first) if second_survives(first, candidate) else (first, candidate)
        survivors[place] = _united(*pair)
        dropped.append(Dropped(memory_id=pair[1].memory.memory_id, reason=reason))
    return survivors


def _by_id(candidate: Candidate) -> str:
    return candidate.memory.memory_id


def _by_hash(candidate: Candidate) -> str:
    return candidate.memory.content_hash


def _by_text(candidate: Candidate) -> str:
    return rendered_text(candidate.memory)


def _later(_first: Candidate, _second: Candidate) -> bool:
    return True


def _stronger(first: Candidate, second: Candidate) -> bool:
    one, other = first.memory, second.memory
    return (other.importance, other.confidence) >= (one.importance, one.confidence)


def _united(survivor: Candidate, gone: Candidate) -> Candidate:
    nearest = max(survivor, gone, key=lambda candidate: candidate.relevance)
    return replace(
        survivor,
        legs=survivor.legs | gone.legs,
        relevance=nearest.relevance,
        relevance_parts=nearest.relevance_parts,
        held_back=survivor.held_back and gone.held_back,
    )
