"""What a new statement is to one that is there."""

from collections.abc import Sequence

from memory_service.domain.claims.chinese import chinese_claims
from memory_service.domain.claims.claim import MANY, Claim, Slot
from memory_service.domain.claims.english import english_claims
from memory_service.domain.claims.words import are_alternatives, is_country, is_town
from memory_service.domain.drafts import LONGEST_CONTENT
from memory_service.domain.ingest import Relation
from memory_service.domain.text import normalize
from memory_service.domain.turns import is_unspaced

_VALUE_IN_VALUE = frozenset(
    {Slot.HOME, Slot.WORKPLACE, Slot.OCCUPATION, Slot.ATTRIBUTE, Slot.MARRIAGE}
)

_LIKED = frozenset({Slot.LIKES, Slot.PREFERS})


def claims(text: str) -> Sequence[Claim]:
    """Read the clauses of a statement; none if it says nothing, or more than a statement does."""
    plain = normalize(text)
    if len(plain) > LONGEST_CONTENT:
        return ()
    return chinese_claims(plain) if is_unspaced(plain) else english_claims(plain)


def relate(new: str, old: str) -> Relation:
    """Say what a statement is to an older one, in the same language; else, in doubt, UNRELATED.

    UPDATE: it says all that the older one says, and more, so its own text is the merged one.
    CONFLICT: it contradicts everything that the older one says.
    """
    if is_unspaced(new) != is_unspaced(old):
        # 北京 may be Beijing.
        return Relation.UNRELATED
    told, known = claims(new), claims(old)
    if not told or not known:
        return Relation.UNRELATED
    pairs = [[_relation(one, other) for other in known] for one in told]
    if all(Relation.DUPLICATE in row for row in pairs):
        return Relation.DUPLICATE
    if all(Relation.CONFLICT in column for column in zip(*pairs, strict=True)):
        return Relation.CONFLICT
    return pairs[0][0] if len(told) == len(known) == 1 else Relation.UNRELATED


def _relation(new: Claim, old: Claim) -> Relation:
    if new.words == old.words:
        same = new.negative == old.negative
        return Relation.DUPLICATE if same else Relation.CONFLICT
    if new.about != old.about or new.limited or old.limited:
        return Relation.UNRELATED
    if new.slot is None or old.slot is None:
        return Relation.UNRELATED
    return Relation.CONFLICT if _takes_back(new, old) else _of_slots(new, old)


def _of_slots(new: Claim, old: Claim) -> Relation:
    if new.slot is not old.slot:
        return _across(new, old)
    if new.slot is Slot.PREFERS:
        return _preference(new, old)
    return _many(new, old) if new.slot in MANY else _single(new, old)


def _single(new: Claim, old: Claim) -> Relation:
    """Compare what has one value at a time."""
    if new.values == old.values:
        return _same_value(new, old)
    if new.negative or old.negative:
        return Relation.UNRELATED
    if new.slot in _VALUE_IN_VALUE:
        (one,), (other,) = new.values, old.values
        if _holds(one, other):
            return Relation.UPDATE if not old.detail else Relation.UNRELATED
        if _holds(other, one):
            return Relation.DUPLICATE if not new.detail else Relation.UNRELATED
        if _of_two_kinds(new.slot, one, other):
            return Relation.UNRELATED
    return Relation.CONFLICT


def _of_two_kinds(slot: Slot, one: str, other: str) -> bool:
    """Tell whether both may hold: a town in a country; an employer in a town."""
    if slot is Slot.WORKPLACE:
        return is_town(one) != is_town(other)
    return slot is Slot.HOME and is_country(one) != is_country(other)


def _many(new: Claim, old: Claim) -> Relation:
    """Compare what any number of values may hold for."""
    if new.negative != old.negative:
        whole = old.values <= new.values and _denies(new, old)
        return Relation.CONFLICT if whole else Relation.UNRELATED
    if new.values == old.values:
        return _same_value(new, old)
    if old.values < new.values and not old.detail:
        return Relation.UPDATE
    return Relation.DUPLICATE if new.values < old.values and not new.detail else Relation.UNRELATED


def _same_value(new: Claim, old: Claim) -> Relation:
    if new.negative != old.negative:
        return Relation.CONFLICT if _denies(new, old) else Relation.UNRELATED
    if new.detail == old.detail or not new.detail:
        return Relation.DUPLICATE
    return Relation.UNRELATED if old.detail else Relation.UPDATE


def _denies(new: Claim, old: Claim) -> bool:
    """Tell whether claims about the same values exclude each other, whatever else they say."""
    return new.detail == old.detail or (new.negative and not new.detail)


def _preference(new: Claim, old: Claim) -> Relation:
    if new.detail != old.detail or new.negative or old.negative:
        return Relation.UNRELATED
    if new.values == old.values:
        if new.against == old.against or not new.against:
            return Relation.DUPLICATE
        return Relation.UPDATE if old.against < new.against else Relation.UNRELATED
    turned = new.against >= old.values or (bool(old.against) and old.against >= new.values)
    either = not new.values & old.values and are_alternatives(new.values, old.values)
    return Relation.CONFLICT if turned or either else Relation.UNRELATED


def _takes_back(new: Claim, old: Claim) -> bool:
    """Tell whether what was liked is named as what is not liked: `tea now, not coffee`."""
    liked = old.slot in _LIKED and not old.negative and not old.detail
    return liked and new.slot in _LIKED and bool(new.denied) and old.values <= new.denied


def _across(new: Claim, old: Claim) -> Relation:
    """Let a dislike end a preference for the same thing, and a new preference a dislike of it."""
    if {new.slot, old.slot} != {Slot.LIKES, Slot.PREFERS}:
        return Relation.UNRELATED
    likes, prefers = (new, old) if new.slot is Slot.LIKES else (old, new)
    against = likes.negative and not prefers.negative and likes.values == prefers.values
    whole = not likes.detail and not prefers.detail
    return Relation.CONFLICT if against and whole else Relation.UNRELATED


def _holds(value: str, part: str) -> bool:
    """Tell whether a value says another one and more: Berlin Mitte, Berlin; 上海浦东, 上海."""
    if is_unspaced(part):
        return value.startswith(part)
    return f" {part} " in f" {value} "
