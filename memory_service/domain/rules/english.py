"""How English sentences ask, doubt, pretend and wish; text is folded: lower case."""

import re

from memory_service.domain.rules.english_rules import RULES
from memory_service.domain.rules.english_words import FIX, POLITE, WORK
from memory_service.domain.rules.rule import Language

LANGUAGE = Language(
    filler=re.compile(
        r"(?:(?:hi|hey|hello|yo|good (?:morning|afternoon|evening)|btw|by the way|also|well|so|"
        r"ok|okay|oh|ah|um|fyi|and|but|yes|yeah|yep|no(?=,| i\b)|nope|actually|anyway|thanks|"
        r"thank you|sorry|right|sure|great|cool|just so you know|for the record|honestly|look|"
        r"for your (?:information|records?)|you know|one more thing|quick note|please|important|"
        r"to be clear|correction|update|hmm|heads up)"
        r"(?: there| all| again| so much)?\b[ ,!:.-]{1,4}){1,6}"
    ),
    remember=re.compile(
        r"(?:i want you to |i need you to |i'd like you to |you (?:should|must) |"
        r"(?:can|could|would|will) you (?:please )?)?(?:please )?(?:always )?"
        r"(?:remember|keep in mind|bear in mind|make a (?:mental )?note|don't (?:ever )?forget|"
        r"do not forget|never forget|memori[sz]e|take note|for future reference|save (?:this|that)|"
        r"store (?:this|that))(?: this| for (?:me|later|next time|the future))?"
        r"(?: that\b|[,:]| to(?= always| never| not))? "
        r"(?:(?<=that )|(?<=: )|(?<=to )(?=always|never|not)|"
        r"(?=(?:i|i'm|i've|i'd|my|we|our|always|never|don't|do not)\b))"
    ),
    note=re.compile(
        r"(?:note|be aware|know|you should know)(?: that|[,:])? (?=(?:i|i'm|my|i've)\b)"
    ),
    remind=re.compile(
        r"(?:(?:can|could|would|will) you (?:please )?)?"
        r"(?:remind me (?:again )?(?:to|about|that|of) |"
        r"(?=remind me [^,]{1,40} (?:to|about|that) ))"
        r"(?!what|how|who|why|when|where)"
    ),
    task=re.compile(rf"{POLITE}(?:{WORK}|{FIX})\b"),
    on_text=re.compile(rf"{POLITE}{FIX}\b|[^:]{{1,120}}:"),
    pretend=re.compile(
        r"(?:please |now |so |ok,? |okay,? )?"
        r"(?:you are (?:now |going to be )?an? |you're (?:now )?an? |act as|act like|pretend|"
        r"imagine|suppose|let's (?:role ?-?play|say|pretend|imagine|assume|play)|"
        r"assume (?:that )?i|in this (?:game|story|scenario|world)|role ?-?play|hypothetically|"
        r"play the role|as a (?:pirate|knight))"
    ),
    question=re.compile(
        r"^(?:do(?! not\b)|does|did|is|are|am|was|were|can|could|should|shall|would|will|have|"
        r"has|had|may|what|what's|whats|who|whose|who's|which|when(?! \w+ing\b)|where|why|how|"
        r"isn't|aren't|don't you|didn't|won't|any idea|remember (?:when|how|what|who|where))\b"
    ),
    corrects=re.compile(
        r"^(?:[a-z]+,? )?(?:actually|correction|update)\b|\b(?:no longer|any ?more|"
        r"changed my mind|instead(?: of)?|from now on|moved|relocated|switched)\b|"
        r"\bnow,? (?:and )?not\b|"
        r"\bnot [^,]{1,40}(?:, but|,? now)\b"
    ),
    forget=re.compile(
        r"(?:please )?(?:don't|do not|never|no need to) (?:ever )?(?:save|store|remember|keep|"
        r"record|memori[sz]e|note)\b|(?:please )?forget\b(?! to\b)"
    ),
    doubt=re.compile(
        r"\b(?:might|may be|maybe|perhaps|probably|possibly|not sure|unsure|i guess|i think|"
        r"i suppose|i wonder|i wish|if only|i don't know|dunno|could be|i would(?! rather)|"
        r"would be|i could|no idea|used to|kidding|just joking|hypothetically|as the song|lyrics|"
        r"see you|talk to you later|ttyl)\b"
    ),
    scoped=re.compile(
        r"\b(?:this time|for now|right now|just once|here\b|in (?:this|the|that|your) "
        r"(?:answer|reply|response|essay|email|text|document|code|function|script|story|poem|"
        r"game|case|next|letter|example|project|file|line|loop|table|summary|query|sentence|"
        r"post|thread|chat)|"
        r"for (?:this|that|the) (?:one|task|answer|essay|email|question|story|next)|"
        r"this (?:answer|essay|email|text|one|code|document|function|story|bug|feature|song|"
        r"poem)|the word)\b"
    ),
    request=re.compile(
        r"(?:,| -|;) ?(?:(?:and |so |but )?(?:can|could|would|will) you\b|"
        r"(?:and |so |now |please )?(?:suggest|recommend|propose|give me|find me|plan|help me)\b|"
        r"(?:and |so )?"
        r"(?:what|how|which|where|who|any (?:ideas|tips|suggestions|recommendations|advice))\b"
        r"(?! *$))[^,]{0,300}$"
    ),
    keep_that=re.compile(
        r"(?:[,;-]| (?=and|so|please)) ?(?:-|and|so|please)? ?(?:please )?"
        r"(?:remember|keep|note|don't forget|save|store) (?:that|this|it)"
        r"(?: in mind| for (?:later|next time|me|the future))?(?:,? please)?$"
    ),
    joint=re.compile(
        r"(?:,|,? and|,? but) (?=(?:i(?:'m| am|'ve| have| live| work| like| love| hate| prefer| "
        r"don't| can't| speak| study)|my \w+(?: \w+)? is|call me)\b)"
    ),
    rules=RULES,
)
