"""Claims of English statements."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_service.domain.claims.claim import MANY, Claim, Slot
from memory_service.domain.words import stem

_CONTRACTIONS = (
    (re.compile("[’`]"), "'"),
    (re.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\bcan not stand\b"), "hate"),
    (re.compile(r"\b(i|you|we|they)'(?:m|re)\b"), r"\1 are"),
    (re.compile(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
    (re.compile(r"\buser is\b"), "user are"),
    (re.compile(r"\([^()]{0,80}\)"), " "),
    (re.compile(r"\b(favo|colo)ur"), r"\1r"),
)
_CLAUSES = re.compile(
    r"[.;!]\s+|,?\s(?:and|but)\s(?=(?:i|my|now)\s)|,\s(?=(?:i|my|now)\s)|\s[-–—]\s"
)
_LEAD = re.compile(
    r"^(?:(?:remember|note|know)(?: that)?|please|actually|also|by the way|now|currently|"
    r"these days|from now on|as of now|well|so|and|but|fyi|today|recently)\b[,:]?\s+"
)
_TAIL = re.compile(
    r",?\s(?:from now on|now|currently|these days|any ?more|any longer|at the moment|too|"
    r"as well|please|though|again|actually|a lot|very much|so much|by now|instead)$"
)
_FILLER = re.compile(
    r"\b(?:now|currently|really|actually|just|still|also|always|recently|already|very|generally|"
    r"usually|definitely|absolutely|kindly)\s"
)
_NEGATION = re.compile(
    r"\b(?:(?:have |has )?(?:stopped|quit|given up|gave up)|no longer|"
    r"(?:do|does|did|can|could|will|should|are|is|am|have|has) not|never|not|no more)\b\s*"
)
_SELF = re.compile(r"^(?:i|(?:the )?user)\b\s*")
_OWN = re.compile(r"\b(?:the )?user's\b")
_AUXILIARY = re.compile(r"(?:^|\s)(?:am|are|is|be|have|has|do|does|been)$")
_DROPPED = frozenset(["a", "an", "the", "am", "are", "is", "be", "been", "do", "does", "please"])
_WORD = re.compile(r"[\w+#@.'-]*\w[+#]*")

_LIMITS = re.compile(
    r"\b(?:but|except|unless|if|only|apart from|other than|sometimes|mostly|half|part[- ]time|"
    r"summers?|winters?|weekends?|during|while|temporarily|for (?:a|the|two|three|\d+) \w+|until)\b"
)
_DETAIL_WORDS = (
    r"\b(?:since|because|as|with|without|when|who|which|where|that|after|before|every|"
    r"last|this|next|on|at|from|for|in|near|together|especially|particularly)\s"
)
_DETAIL = re.compile(rf"\s*(?:[,;:]|{_DETAIL_WORDS})")
_DETAIL_OF_LIST = re.compile(rf"\s*(?:[;:]|,?\s?{_DETAIL_WORDS})")
_ITEMS = re.compile(r"\s*(?:,|\band\b|\bor\b|&)\s*")
_AGAINST = re.compile(
    r",?\s(?:and not|but not|not|instead of|rather than|over|more than)\s(?P<against>.+)$"
)

_DENIED = re.compile(r"^,?\s(?:and |but )?not\s")
_CONTRAST = re.compile(r",\s(?:and |but )?not\s[^,]+$")
"""What something is not, behind what it is: `Rob, not Bob`."""

_LANGUAGES = (
    "english|chinese|mandarin|cantonese|german|french|spanish|japanese|korean|italian|portuguese|"
    "russian|dutch|arabic|hindi"
)
_ONE_VALUE = (
    "name|full name|first name|last name|nickname|birthday|date of birth|age|address|email|"
    "e-?mail address|phone number|phone|number|job|occupation|profession|employer|hometown|"
    "time ?zone|native language|mother tongue|height|weight|shoe size|size|budget|deadline|"
    "salary|blood type|zodiac sign|wake-up time|bedtime|editor|pronouns"
)
_TAKING = "(?: to)?(?: drink(?:ing)?| eat(?:ing)?)?"
_PATTERNS: tuple[tuple[Slot, re.Pattern[str]], ...] = (
    (
        Slot.HOME,
        re.compile(
            r"^(?P<about>.*?)\b(?:lives?|living|resides?|residing|based|moved|relocated|settled)"
            r" (?:in|to|at)(?! (?:a|an|the|my|our|using)\b)(?P<value> .+)$"
        ),
    ),
    (
        Slot.OCCUPATION,
        re.compile(r"^(?P<about>.*?)\bwork(?:s|ing)? as (?:an? |the )?(?P<value>.+)$"),
    ),
    (
        Slot.WORKPLACE,
        re.compile(
            r"^(?P<about>.*?)\b(?:work(?:s|ing)?|employed) (?:at|for)"
            r"(?! (?:a|an|the|my|home|nights?|weekends?|free|fun|money|myself)\b)(?P<value> .+)$"
        ),
    ),
    (Slot.ADDRESSED, re.compile(r"^(?P<about>)(?:call me|address me as)(?P<value> .+)$")),
    (
        Slot.ATTRIBUTE,
        re.compile(
            r"^(?P<about>.*?(?:\bmy|'s)) (?:new |current )?"
            rf"(?P<thing>{_ONE_VALUE}|favorite [\w ]+?)"
            r"(?: is| are|:| has changed to| changed to| =)(?: on| at| in)?(?P<value> .+)$"
        ),
    ),
    (
        Slot.AGE,
        re.compile(r"^(?P<about>.*?)\b(?:are |is |turned )?(?P<value>\d{1,3}) years? old$"),
    ),
    (
        Slot.MARRIAGE,
        re.compile(
            r"^(?P<about>.*?)(?:\bgot )?"
            r"(?P<value>\b(?:single|married|divorced|engaged|widowed)\b.*)$"
        ),
    ),
    (
        Slot.DIET,
        re.compile(
            r"^(?P<about>.*?)\b(?:an? )?(?P<value>vegetarian|vegan|pescatarian|omnivore|carnivore)$"
        ),
    ),
    (
        Slot.LANGUAGE,
        re.compile(
            r"^(?P<about>)(?:answer|reply|respond|write|speak|talk)(?: to me| back| everything)?"
            rf" in(?P<value> (?:{_LANGUAGES}))$"
        ),
    ),
    (Slot.ALLERGY, re.compile(r"^(?P<about>.*?)\ballergic to(?P<value> .+)$")),
    (
        Slot.SPEAKS,
        re.compile(rf"^(?P<about>.*?)\bspeaks?(?: fluent)?(?P<value> (?:{_LANGUAGES})\b.*)$"),
    ),
    (
        Slot.PREFERS,
        re.compile(rf"^(?P<about>.*?)\bprefer(?:s|red)?{_TAKING}(?P<value> .+)$"),
    ),
    (
        Slot.LIKES,
        re.compile(
            r"^(?P<about>.*?)\b"
            r"(?:likes?|loves?|enjoys?|adores?|(?:are |is )?(?:a fan of|fond of|into))"
            rf"{_TAKING}(?P<value> .+)$"
        ),
    ),
    (
        Slot.LIKES,
        re.compile(
            r"^(?P<about>.*?)\b(?P<hates>dislikes?|hates?|detests?|loathes?)(?P<value> .+)$"
        ),
    ),
)


def english_claims(text: str) -> Sequence[Claim]:
    """Read the clauses of a normalised statement."""
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    clauses = (_stripped(clause) for clause in _CLAUSES.split(text))
    return [_claim(clause) for clause in clauses if clause]


def _stripped(clause: str) -> str:
    """Take away what says nothing about the matter, at both ends and within."""
    clause = _OWN.sub("my", clause.strip(" .,;:!?\"'"))
    before = ""
    while before != clause:
        before = clause
        clause = _TAIL.sub("", _LEAD.sub("", clause))
    return _FILLER.sub("", clause)


def _claim(clause: str) -> Claim:
    kept, against, denies = _compared(clause)
    positive, negations = _NEGATION.subn("", kept)
    words = stems(_SELF.sub("", f"{positive} {' '.join(against)}"))
    negative = negations % 2 == 1
    for slot, pattern in _PATTERNS:
        match = pattern.match(positive)
        if match:
            claim = _filled(slot, match, words, negative=negative, against=against)
            return replace(claim, denied=claim.against) if denies else claim
    return Claim(words=words, negative=negative)


def _compared(clause: str) -> tuple[str, Sequence[str], bool]:
    """Cut off what a preference is for something else than, and tell whether that is denied."""
    verb = re.search(r"\b(?:prefers?|likes?|loves?|enjoys?)\b", clause)
    match = _AGAINST.search(clause, verb.end() + 1) if verb else None
    if verb is None or match is None or verb.end() + 1 == match.start():
        return _CONTRAST.sub("", clause), (), False
    kept = clause[: match.start()]
    if " more than " in match[0]:
        kept = re.sub(r"\b(?:likes?|loves?|enjoys?)\b", "prefer", kept)
    return kept, (match["against"],), _DENIED.match(match[0]) is not None


def _filled(
    slot: Slot,
    match: re.Match[str],
    words: tuple[str, ...],
    *,
    negative: bool,
    against: Iterable[str],
) -> Claim:
    value = match["value"].strip()
    listed = slot in MANY or slot is Slot.PREFERS
    end = (_DETAIL_OF_LIST if listed else _DETAIL).search(value)
    head, detail = (value, "") if end is None else (value[: end.start()], value[end.start() :])
    values = _values(_ITEMS.split(head) if slot in MANY else [head])
    if not values:
        return Claim(words=words, negative=negative)
    groups = match.groupdict()
    return Claim(
        words=words,
        negative=negative != bool(groups.get("hates")),
        slot=slot,
        about=_about(f"{match['about']} {groups.get('thing') or ''}"),
        values=values,
        against=_values(item for each in against for item in _ITEMS.split(each)),
        detail=stems(detail),
        limited=_LIMITS.search(value) is not None,
    )


def _about(subject: str) -> str:
    """Say whose claim it is; empty for who speaks."""
    about = subject.strip()
    before = ""
    while before != about:
        before = about
        about = _AUXILIARY.sub("", about).strip()
    return " ".join(stems(_SELF.sub("", about + " ")))


def _values(values: Iterable[str]) -> frozenset[str]:
    found = (" ".join(stems(value)) for value in values)
    return frozenset(value for value in found if value)


def stems(text: str) -> tuple[str, ...]:
    """Give the stems of the words that matter, in order."""
    return tuple(stem(word) for word in _WORD.findall(text) if word not in _DROPPED)
