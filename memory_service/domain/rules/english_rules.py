"""Statements that are kept, in English; text is folded: lower case."""

from memory_service.domain.model import MemoryType
from memory_service.domain.rules.english_words import (
    ACT,
    ADVERBS,
    COUNTED,
    EVENT,
    FROM_NOW,
    I_AM,
    I_HAVE,
    KIN,
    OBJECT,
    OCCUPATION,
    ORDER,
    OWNED,
    THING,
)
from memory_service.domain.rules.rule import rule

RULES = (
    rule(
        MemoryType.CONSTRAINT,
        0.95,
        rf"{I_AM}(?:allergic to|intolerant (?:to|of)) \w",
        rf"{I_AM}(?:lactose|gluten|fructose|histamine|dairy)[- ]intolerant",
        rf"{I_HAVE} an? (?:\w+ ){{0,3}}(?:allergy|intolerance)\b",
        r"my (?:\w+ ){0,2}allerg(?:y|ies) (?:is|are|to)\b",
        rf"{I_AM}(?:an? )?(?:\w+ )?(?:vegetarian|vegan|pescatarian|coeliac|celiac|"
        r"teetotal(?:er)?)\b",
        rf"i (?:can't|cannot|can not|mustn't|must not|am not allowed to) {ADVERBS}"
        r"(?:eat|drink|have|tolerate|digest) (?!another|any ?more|it\b|this|that|now|more\b|"
        r"much more)"
        r"(?![^,]{0,40}(?:right now|today|tonight|at the moment|anymore))\w",
        r"i (?:don't|do not|never|no longer) (?:ever )?(?:eat|drink) (?!it\b|this|that|much\b|"
        r"enough)\w",
        r"i never (?:fly|drive|eat|drink|smoke|work on)\b",
        r"i (?:keep|eat|only eat) (?:strictly )?(?:kosher|halal|vegan|vegetarian|gluten[- ]free)\b",
        r"i(?:'m| am) on a \w+(?:[- ]\w+)? diet",
        r"i (?:must|have to|need to) (?:always|never) \w",
    ),
    rule(
        MemoryType.CONSTRAINT,
        0.95,
        rf"{FROM_NOW}{ORDER}",
        rf"(?:please )?{ACT} [^,]{{1,120}} (?:from now on|going forward|in (?:the )?future)$",
        standing=True,
        explicit=True,
    ),
    rule(
        MemoryType.CONSTRAINT,
        0.85,
        rf"(?:always|never|don't ever|do not ever) {ACT}\b{OBJECT}",
        rf"you (?:must|should|have to|need to|are to) (?:always|never) {ACT}\b{OBJECT}",
        rf"you must(?: not)? {ACT}\b{OBJECT}",
        rf"(?:don't|do not) (?!be\b|make me){ACT}\b{OBJECT}",
        r"keep (?:your|all|all your|the) (?:answers|replies|responses|messages|explanations) \w",
        r"(?:no|stop using|avoid|avoid using) (?:emojis?|bullet points|jargon|slang|swearing)\b",
        standing=True,
    ),
    rule(
        MemoryType.PREFERENCE,
        0.9,
        rf"i {ADVERBS}(?:prefer|favou?r) {THING}\w",
        rf"my {ADVERBS}(?:favou?rite|fave|preferred) (?:\w+ ){{1,4}}(?:is|are|was|"
        r"has always been) \w",
        r"(?:\w+ ){1,4}(?:is|are) my (?:favou?rite|fave)\b",
        r"i(?:'d| would) (?:much )?rather [^?]{1,80} than \w",
        rf"i {ADVERBS}(?:like|love|enjoy|adore|hate|dislike|detest|loathe|despise) {THING}\w",
        rf"i (?:don't|do not|no longer|never) {ADVERBS}(?:like|love|enjoy|care for) {THING}\w",
        rf"i (?:can't|cannot) stand {THING}\w",
        rf"{I_AM}(?:not )?(?:an? )?(?:big |huge |great )?fan of {THING}\w",
        rf"{I_AM}(?:not )?(?:that |too )?(?:into|fond of|keen on|crazy about|"
        rf"obsessed with) {THING}\w",
        rf"{I_AM}(?:not )?(?:more of )?an? (?:early )?(?:morning|night|cat|dog|coffee|tea|people|"
        r"bird) "
        r"(?:person|owl|lover)",
        rf"{I_AM}(?:a night owl|an early bird)",
    ),
    rule(
        MemoryType.FACT,
        0.95,
        r"my (?:full |first |last |real )?name(?:'s| is) \w",
        r"i(?:'m| am) called \w",
        r"i go by \w",
    ),
    rule(
        MemoryType.FACT,
        0.95,
        r"(?:please |just |you can |but )?call me (?!back|crazy|later|when|if|in|at|on|an?\b|the|"
        r"up|"
        r"maybe|old|stupid|paranoid|tomorrow|now|again|tonight|out|by)[\w.'-]{1,30}(?: \w{1,30})?$",
        explicit=True,
    ),
    rule(
        MemoryType.TODO_HINT,
        0.85,
        r"(?:i|we)(?:'ve| have)? (?:need|have|must|got|ought|plan|want|am supposed|"
        r"should)(?: to)? "
        r"(?!go now|to know|know)\w",
        r"(?:i|we)(?:'ll| will|'m going to| am going to|'re going to| are going to|'m gonna) "
        r"(?!see you|talk|try again|be back|come back|let you|ask you|tell you|go to bed|sleep)\w",
        rf"{I_HAVE} (?:an?|my|the|another|two|three) (?:\w+(?:'s)? ){{0,4}}{EVENT}\b",
        rf"(?:my|our|the) (?:\w+(?:'s)? ){{0,3}}{EVENT} (?:is|are|starts?|begins?|for|"
        r"takes place|to)\b",
        r"(?:i|we)(?:'m| am|'re| are)? (?:start|starting|leave|leaving|fly|flying|travell?ing|"
        r"moving|"
        r"move|meeting|meet|visiting|getting|take|taking|due|presenting|graduate|graduating|go|"
        r"going "
        r"to|have|seeing|host|hosting|running|driving|defending|returning|return|arrive|"
        r"arriving)\b",
        r"(?:tomorrow|tonight|next \w+|on \w+(?: \d+)?|in \w+ \w+),? (?:i|we)(?:'m|'ll| am| will)? "
        r"(?!see you|might|think)\w",
        r"(?:my|our) (?:\w+ ){1,3}(?:is|are) due\b",
        dated=True,
    ),
    rule(
        MemoryType.TODO_HINT,
        0.85,
        r"(?:i|we)(?:'ve| have)? (?:need|have|must|got|ought|am supposed)(?: to)? (?!a\b|an\b|"
        r"the\b|no\b)\w",
        wished=True,
    ),
    rule(
        MemoryType.FACT,
        0.9,
        r"i (?:currently |still |now )?live (?:in|near|with|at|on|alone|outside|by|close to) "
        r"(?!fear|a world|the moment|this|that)\w",
        r"(?:i|we)(?:'ve| have)? (?:just |recently |finally )?(?:moved|relocated) "
        r"(?:house|home|(?:back )?(?:to|from|into|in with|out|here)\b)",
        rf"{I_AM}(?:originally )?(?:from|based in|living in|located in) (?!the future|here\b|"
        r"there\b)\w",
        r"i (?:was born|grew up|was raised) (?:in|on) \w",
        r"i (?:currently |now )?work (?:as|at|for|in|from|part|nights|remotely|full)\b(?! it\b)",
        rf"{I_AM}an? (?:[a-z-]+ ){{0,3}}{OCCUPATION}(?=$|[,;]| (?:at|in|for|from|by|with|and|who|"
        r"of)\b)",
        rf"{I_AM}(?:retired|self-employed|a stay-at-home|married|single|engaged|divorced|"
        r"widowed)\b",
        r"my (?:birthday|bday|anniversary)(?:'s| is|'s on| is on| falls on) \w",
        rf"my (?:\w+ )?{KIN}(?:'s)? (?:name(?:'s| is)|is called|is named|goes by) \w",
        rf"{I_HAVE} {COUNTED} (?:\w+ ){{0,3}}{OWNED}\b",
        rf"{I_AM}(?:currently )?(?:learning|studying|training to be|majoring in) (?!how|that|"
        r"this)\w",
        r"i (?:study|studied|major in|majored in|teach|graduated) (?!this|that|it\b)\w",
        r"i (?:can )?speak (?!to|with|for|of|about)\w",
        rf"{I_AM}(?:[0-9]{{1,3}}(?: ?(?:years old|y/?o|yrs old))?$|[0-9]{{1,3}} years old)",
        rf"{I_AM}[0-9]{{3}} ?cm\b|{I_AM}(?:left|right)-handed",
        r"my (?:current |home |work |e-?mail |phone |native |first |mother |shoe |shirt |dress )?"
        r"(?:time ?zone|address|e-?mail|phone number|number|job|job title|occupation|hometown|"
        r"language|"
        r"tongue|company|employer|car|nickname|pronouns|age|height|size|nationality|hobby|hobbies|"
        r"major|zodiac sign|star sign|blood type)(?:'s| is| are) (?!broken|slow|not\b|wrong|gone|"
        r"dead)\w",
        r"i (?:drive|own|ride|play|practi[sc]e|collect) (?!it\b|this|that|along)\w",
        r"i(?:'ve| have) (?:been )?(?:lived?|living|work(?:ed|ing)|married|learning|playing) "
        r"(?:in|at|as|for|with|since)\b",
        r"i (?:usually|normally|always|typically) (?:wake|get up|go to bed|go running|work|run|"
        r"exercise|"
        r"have breakfast|have lunch|have dinner|commute|cycle|take the)\b",
        rf"my (?:\w+ )?{KIN} (?:is|has|lives|works|was|turns) \w",
        r"(?:i|we) (?:just )?(?:got|adopted|bought) (?:married|engaged|an? (?:\w+ ){0,2}"
        r"(?:dog|cat|puppy|kitten|house|flat|apartment|car|baby))\b",
    ),
)
