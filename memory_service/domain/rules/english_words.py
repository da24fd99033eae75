"""Words and turns of phrase that English rules are made of: pieces of patterns."""

ADVERBS = (
    r"(?:(?:always|still|much|very much|now|just|also|quite|so|most(?:ly)?|only|often|very|not|"
    r"no longer|kind of|[a-z]{3,14}ly) ){0,3}"
)
I_AM = rf"i(?:'m| am|m) {ADVERBS}"
I_HAVE = r"(?:i have|i've got|i got|we have|we've got)"
TOPIC = (
    r"(?:(?:when \w+|these days|nowadays|lately|in general|for \w+|as for \w+|in the \w+|on \w+|"
    r"between \w+ and|of all)(?: \w+){0,3},? )?"
)
"""What a statement may begin with: when flying, for breakfast."""

THING = (
    r"(?!(?:it|this|that|these|those|them|him|her|you|your|yours|when you|how you|where this|"
    r"what you|both|either|neither|all of|to know|to see|to hear|not to|nothing|everything|"
    r"option|version|number|answer [a-z0-9]|how|to$|[a-z]$)\b"
    r"|[^,]{1,80}\b(?:this|these(?! days)|those|them)\b"
    r"|the (?:first|second|third|last|latter|former|other|idea|ones?|way|answer|version|new|"
    r"sound|looks?|option|result|output|name|above|previous|tone|plan|suggestion|ending|"
    r"picture|image|title|style|draft|intro)\b)"
)
"""Not what lies before the two speakers: your answer, the second one, option B."""

COUNTED = r"(?:an?|one|two|three|four|five|six|no|twin|[0-9]{1,2})"
KIN = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kids?|child|brother|"
    r"sister|mom|mum|mother|dad|father|dog|cat|pet|boss|manager|best friend)"
)
OWNED = (
    r"(?:kids?|children|sons?|daughters?|boys?|girls?|brothers?|sisters?|siblings?|twins|dogs?|"
    r"cats?|puppy|kittens?|pets?|parrots?|rabbits?|horses?|grandchildren|grandkids|garden)"
)
OCCUPATION = (
    r"(?:[a-z]{2,20}(?:eer|tor|ger|yer|per|ner|ter|cher|ist|ian|ant|ard|iver)|nurse|doctor|chef|"
    r"cook|pilot|student|clerk|architect|vet|judge|freelancer|dancer|surgeon|plumber|farmer|"
    r"author|soldier|photographer|researcher|baker|barber|software dev|ceo|cto|founder|postdoc|"
    r"retiree|mom|dad|mother|father|parent)"
)
EVENT = (
    r"(?:exams?|appointment|meeting|flight|interview|deadline|presentation|test|surgery|party|"
    r"operation|wedding|call|visit|check-?up|class|lesson|trip|concert|date|quiz|viva|defen[sc]e|"
    r"dentist|doctor|conference|talk|match|game|race|marathon|reservation|booking|shift|move|"
    r"visa|train|session|review|hearing|vacation|holiday|recital|ceremony)"
)
ACT = (
    r"(?:use|answer|reply|respond|write|call|address|give|show|tell|include|add|ask|send|start|"
    r"end|speak|talk|translate|explain|suggest|recommend|mention|schedule|book|put|make|format|"
    r"cite|provide|be|assume|convert|say|remind|avoid|order|keep|stick|skip|refer|round|sign|"
    r"list|prefer|apologi[sz]e|repeat|assign|propose|offer|bring up|plan|buy)"
)
"""What an assistant does."""
SOCIAL = (
    r"(?:suggest|recommend|mention|schedule|book|call|ask|remind|apologi[sz]e|order|buy|assign|"
    r"propose|offer|bring up|plan|address|say|speak|talk)"
)
"""What an assistant does with a person, where an order is seldom about one text."""
MANNER = (
    r"(?:\bmy\b|\bme\b|emojis?|bullet|lists?\b|markdown|jargon|slang|exclamation|passive voice|"
    r"spoilers?|small talk|filler|disclaimers?|apologies|profanity|swear|caps|abbreviations|"
    r"acronyms|headings?|tables?\b|hashtags?|english|german|french|spanish|chinese|units?)"
)
"""How an assistant writes to a person."""
OBJECT = r"(?! (?:it|that|this|them|so|yet|again|anything$|up|me wait\w*|me laugh|sure)\b)(?= \w)"
REPLIES = r"(?:answers|replies|responses|messages|explanations|emails)"
FROM_NOW = (
    r"(?:from (?:now|today|here) on(?:wards?)?|from now|going forward|moving forward|henceforth|"
    r"in (?:the )?future|as of (?:now|today)|for (?:all )?future (?:answers|replies|chats)),? "
)
ORDER = (
    r"(?:please,? |always |never |don't |do not |only |just |you (?:should|must|have to|will) |"
    rf"(?:if|when|whenever) i |no (?:more )?\w|{ACT}\b)"
)
FIX = (
    r"(?:translate|fix|correct|summari[sz]e|sum up|rewrite|rephrase|paraphrase|proofread|improve|"
    r"edit|polish|shorten|expand|analy[sz]e|review|grade|check|continue|complete|finish|explain|"
    r"sing|read|parse|classify|extract|debug|format|convert|reply to|respond to|answer)"
)
"""Work on a text that comes with the request."""
WORK = (
    r"(?:write|draft|give me|make|create|generate|list|tell me|show me|find|compare|help me|"
    r"compose|implement|act|plan|suggest|recommend|look|solve|calculate|compute|design|draw|"
    r"build|code|prove|outline|define|sort|describe|search|add|put|use|do(?! not)|play|name|"
    r"pick|choose|let x|"
    r"for (?:this|the) (?:essay|email|text|answer|task|letter|report|article|story|poem))"
)
POLITE = r"(?:(?:please|now|then|ok|okay|can you|could you|would you|will you|just|so),? ){0,3}"
