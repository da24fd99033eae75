"""Words and turns of phrase that English rules are made of: pieces of patterns."""

ADVERBS = (
    r"(?:(?:really|absolutely|also|always|usually|generally|still|much|very much|now|just|truly|"
    r"personally|honestly|definitely|particularly|especially|strongly|actually|quite|so|totally|"
    r"only|mostly|normally|typically|often|simply|strictly|severely|deathly|highly|very) ){0,3}"
)
I_AM = rf"i(?:'m| am|m) {ADVERBS}"
I_HAVE = r"(?:i have|i've got|i got|we have)"
THING = (
    r"(?!(?:it|this|that|these|those|them|him|her|you|your|yours|when you|how you|where this|"
    r"what you|both|either|neither|all of|to know|to see|to hear|not to|nothing|everything)\b"
    r"|the (?:first|second|third|last|latter|former|other|idea|one|ones|way|answer|version|new|"
    r"sound|look|option|result|output|name|second|above|previous|tone|plan|suggestion)\b)"
)
COUNTED = r"(?:an?|one|two|three|four|five|six|no|twin|[0-9]{1,2})"
KIN = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kid|child|brother|"
    r"sister|mom|mum|mother|dad|father|dog|cat|pet|boss|manager|best friend)"
)
OWNED = (
    r"(?:kids?|children|sons?|daughters?|brothers?|sisters?|siblings?|twins|dogs?|cats?|puppy|"
    r"kittens?|pets?|parrots?|rabbits?|horses?|grandchildren|grandkids|garden)"
)
OCCUPATION = (
    r"(?:[a-z]{2,20}(?:eer|tor|ger|yer|per|ner|ter|cher|ist|ian|ant|ard|iver)|nurse|doctor|chef|"
    r"cook|"
    r"pilot|student|clerk|architect|vet|judge|scientist|freelancer|dancer|surgeon|plumber|farmer|"
    r"writer|author|soldier|photographer|researcher|teacher|baker|barber|carpenter|software dev|"
    r"ceo|cto|founder|phd student|postdoc|retiree|mom|dad|mother|father|parent)"
)
EVENT = (
    r"(?:exams?|appointment|meeting|flight|interview|deadline|presentation|test|surgery|operation|"
    r"party|wedding|call|visit|check-?up|class|lesson|trip|concert|date|quiz|viva|defen[sc]e|"
    r"dentist|doctor|conference|talk|match|game|race|marathon|reservation|booking|shift|move|visa|"
    r"train|session|review|hearing|vacation|holiday)"
)
ACT = (
    r"(?:use|answer|reply|respond|write|call|address|give|show|tell|include|add|ask|send|start|end|"
    r"speak|talk|translate|explain|suggest|recommend|mention|schedule|book|put|make|format|cite|"
    r"provide|be|assume|convert|say|remind|avoid|order|keep|stick|skip|refer|round|sign|list|"
    r"prefer|apologi[sz]e|repeat|assign|propose|offer|bring up|plan|buy)"
)
OBJECT = r"(?! (?:it|that|this|them|so|yet|again|anything$|up|me wait\w*|me laugh|sure)\b)(?= \w)"
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
WORK = (
    r"(?:write|draft|give me|make|create|generate|list|tell me|show me|find|compare|help me|"
    r"compose|implement|act|plan|suggest|recommend|look|solve|calculate|compute|design|draw|build|"
    r"code|prove|outline|define|sort|describe|search|add|put|use|do|play|name|pick|choose|explain|"
    r"for (?:this|the) (?:essay|email|text|answer|task|letter|report|article|story|poem))"
)
POLITE = r"(?:(?:please|now|then|ok|okay|can you|could you|would you|will you|just|so),? ){0,3}"
