"""How English sentences ask, doubt, pretend and wish; text is folded: lower case."""

import re

from memory_service.domain.rules.english_rules import RULES
from memory_service.domain.rules.english_words import FIX, POLITE, WORK
from memory_service.domain.rules.rule import Language

LANGUAGE = Language(
    filler=re.compile(
        r"(?:(?:hi|hey|hello|yo|good (?:morning|afternoon|evening)|btw|by the way|also|well|so|"
        r"ok|okay|"
        r"oh|ah|um|fyi|and|but|yes|yeah|yep|no(?=,| i\b)|nope|actually|anyway|thanks|thank you|"
        r"sorry|right|sure|"
        r"great|cool|just so you know|for the record|for your information|you know|honestly|look|"
        r"one more thing|quick note|please|important|to be clear|correction|update|hmm)"
        r"(?: there| all| again| so much)?\b[ ,!:.-]{1,4})+"
    ),
    remember=re.compile(
        r"(?:i want you to |i need you to |i'd like you to |(?:can|could|would|"
        r"will) you (?:please )?|you "
        r"(?:should|must) )?(?:please )?(?:always )?(?:remember|keep in mind|bear in mind|"
        r"make a (?:mental "
        r")?note|don't (?:ever )?forget|do not forget|never forget|memori[sz]e|take note|"
        r"for future "
        r"reference|save (?:this|that)|store (?:this|that))(?: this| for (?:me|later|next time|the "
        r"future))?(?: that\b|[,:])? (?:(?<=that )|(?<=[,:] )|(?=(?:i|i'm|i've|i'd|my|we|our|"
        r"always|never|"
        r"don't|do not)\b))"
    ),
    note=re.compile(
        r"(?:note|be aware|know|you should know)(?: that|[,:])? (?=(?:i|i'm|my|i've)\b)"
    ),
    remind=re.compile(
        r"(?:(?:can|could|would|will) you (?:please )?)?remind me (?:again )?"
        r"(?:[^,]{0,40}? )?(?:to|about|that|of) (?!what|how|who|why|when|where)"
    ),
    task=re.compile(rf"{POLITE}(?:{WORK}|{FIX})\b"),
    on_text=re.compile(rf"{POLITE}{FIX}\b|[^:]{{1,120}}:"),
    pretend=re.compile(
        r"(?:please |now |so |ok,? |okay,? )?(?:you are (?:now |going to be )?an? |"
        r"you're (?:now )?an? |"
        r"act as|act like|pretend|imagine|suppose|let's (?:role ?-?play|say|pretend|imagine|"
        r"assume|play)|"
        r"assume (?:that )?i|in this (?:game|story|scenario|world)|role ?-?play|hypothetically|"
        r"play the role|as a (?:pirate|knight))"
    ),
    question=re.compile(
        r"^(?:do(?! not\b)|does|did|is|are|am|was|were|can|could|should|shall|would|will|have|"
        r"has|had|may|what|"
        r"what's|whats|who|whose|who's|which|when|where|why|how|isn't|aren't|don't you|didn't|"
        r"won't|"
        r"any idea|remember (?:when|how|what|who|where))\b(?! you must)"
    ),
    doubt=re.compile(
        r"\b(?:might|may be|maybe|perhaps|probably|possibly|not sure|unsure|i guess|i think|"
        r"i suppose|"
        r"i wonder|i wish|if only|i don't know|dunno|could be|i would(?! rather)|would be|"
        r"i could|no idea|"
        r"used to|kidding|just joking|hypothetically|as the song|lyrics|see you|"
        r"talk to you later|ttyl)\b"
    ),
    scoped=re.compile(
        r"\b(?:this time|for now|right now|just once|here\b|in (?:this|the|that|your) "
        r"(?:answer|reply|response|essay|email|text|document|code|function|script|story|poem|"
        r"game|case|"
        r"next|letter|example|project|file|line|loop|table|summary|query|sentence|post|thread|"
        r"chat)|"
        r"for (?:this|that|the) (?:one|task|answer|essay|email|question|story|next)|this "
        r"(?:answer|essay|email|text|one|code|document|function|story|bug|feature|song|poem))\b"
    ),
    request=re.compile(
        r"(?:,| -|;) ?(?:(?:and |so |but )?(?:can|could|would|will) you\b|(?:and |so )?(?:what|"
        r"how|which|"
        r"where|who|any (?:ideas|tips|suggestions|recommendations|advice))\b)[^,]*$"
    ),
    keep_that=re.compile(
        r"[,;]? ?(?:-|and|so|please)? ?(?:please )?(?:remember|keep|note|don't forget|save|store) "
        r"(?:that|this|it)(?: in mind| for (?:later|next time|me|the future))?(?:,? please)?$"
    ),
    rules=RULES,
)
