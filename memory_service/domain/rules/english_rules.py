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
    MANNER,
    OBJECT,
    OCCUPATION,
    ORDER,
    OWNED,
    REPLIES,
    SOCIAL,
    THING,
    TOPIC,
)
from memory_service.domain.rules.rule import rule

NEEDS = rule(
    MemoryType.CONSTRAINT,
    0.95,
    rf"{I_AM}(?:allergic to|intolerant (?:to|of)) \w",
    rf"{I_AM}(?:lactose|gluten|fructose|histamine|dairy)[- ]intolerant",
    rf"{I_HAVE} an? (?:\w+ ){{0,3}}(?:allergy|intolerance)\b",
    r"my (?:\w+ ){0,2}allerg(?:y|ies) (?:is|are|to)\b",
    r"(?:\w+ ){1,4}(?:is|are) off[- ]limits for me",
    r"(?:\w+ ){1,3}(?:makes? me (?:sick|ill)|gives? me (?:hives|a rash|migraines?))\b",
    rf"{I_AM}(?:an? )?(?:\w+ )?(?:vegetarian|vegan|pescatarian|coeliac|celiac|teetotal(?:er)?)\b",
    r"my diet is \w",
    r"i(?:'m| am) (?:on|following) an? \w+(?:[- ]\w+)? diet",
    r"i (?:keep|eat|only eat) (?:strictly )?(?:kosher|halal|vegan|vegetarian|gluten[- ]free)\b",
    rf"i (?:can't|cannot|can not|mustn't|must not|am not allowed to) {ADVERBS}"
    r"(?:eat|drink|have|tolerate|digest) "
    r"(?!another|any ?more|it\b|this|that|now|more\b|much more)"
    r"(?![^,]{0,40}(?:right now|today|tonight|at the moment|anymore))\w",
    r"i (?:don't|do not|never|no longer) (?:ever )?(?:eat|drink) "
    r"(?!it\b|this|that|much\b|enough)\w",
    r"i (?:don't|do not|never|no longer) (?:ever )?(?:smoke|fly|drive|take sugar|take milk|"
    r"take calls|work (?:on|at|before|after|past)\b)",
    rf"{FROM_NOW}i(?: only| never| don't| won't|'m| am) \w",
    rf"{I_AM}colou?r[- ]?blind\b",
    r"i (?:must|have to|need to) (?:always|never) \w",
)
"""What must be heeded about the user: allergies, diets, what they never do."""

FROM_NOW_ON = rule(
    MemoryType.CONSTRAINT,
    0.95,
    rf"{FROM_NOW}{ORDER}",
    rf"(?:please )?{ACT} [^,]{{1,120}} (?:from now on|going forward|in (?:the )?future)$",
    rf"i(?:'d like| want| need| would like) you to (?:always|never|stop) {ACT}?",
    standing=True,
    explicit=True,
)

ORDERS = rule(
    MemoryType.CONSTRAINT,
    0.85,
    rf"(?:always|never|don't ever|do not ever) {ACT}\b{OBJECT}",
    rf"you (?:must|should|have to|need to|are to) (?:always|never) {ACT}\b{OBJECT}",
    rf"you must(?: not)? {ACT}\b{OBJECT}",
    rf"(?:don't|do not) {SOCIAL}\b{OBJECT}",
    rf"(?:don't|do not) (?!be\b|make me){ACT}\b{OBJECT}[^,]{{0,60}}?{MANNER}",
    rf"keep (?:your|all|all your|the) {REPLIES} \w",
    r"(?:no|stop using|avoid|avoid using) (?:emojis?|bullet points|jargon|slang|swearing)\b",
    standing=True,
)

TASTES = rule(
    MemoryType.PREFERENCE,
    0.9,
    rf"{TOPIC}i {ADVERBS}(?:prefer|favou?r) {THING}\w",
    rf"i {ADVERBS}(?:like|prefer|want|'d like) (?:your |my |the )?(?:\w+ )?{REPLIES}\b",
    rf"my {ADVERBS}(?:favou?rite|fave|preferred) (?:\w+ ){{1,4}}"
    r"(?:is|are|was|has always been) \w",
    r"(?:\w+ ){1,4}(?:is|are) my (?:all-time )?(?:favou?rite|fave)\b",
    r"i(?:'d| would) (?:much )?rather [^?]{1,80} than \w",
    rf"{TOPIC}i {ADVERBS}(?:like|love|enjoy|adore|hate|dislike|detest|loathe|despise) {THING}\w",
    rf"{TOPIC}i (?:don't|do not) {ADVERBS}(?:like|love|enjoy|care for) {THING}\w",
    rf"i (?:can't|cannot) stand {THING}\w",
    r"(?!it\b|this|that)(?:\w+ ){1,4}(?:is|are|tastes?|smells?) [^,]{1,40}, "
    r"(?:and )?i (?:hate|love|can't stand|don't like) (?:it|them)$",
    r"(?!it\b|this|that)(?:\w+ ){1,3}tastes? [^,]{1,40}, (?:i )?can't stand (?:it|them)$",
    rf"{I_AM}(?:an? )?(?:big |huge |great )?fan of {THING}\w",
    rf"{I_AM}an? (?!big|huge|great)(?:\w+ ){{1,3}}fan\b",
    rf"{I_AM}(?:that |too )?(?:into|fond of|keen on|crazy about|obsessed with) {THING}\w",
    rf"{TOPIC}{I_AM}(?:more of )?an? (?:early )?"
    r"(?:morning|night|cat|dog|coffee|tea|people|beach|mountains?|city|country|bird) "
    r"(?:person|owl|lover)",
    rf"{I_AM}(?:a night owl|an early bird)",
    rf"{TOPIC}i (?:only|mostly|mainly) (?:ever )?"
    rf"(?:drink|eat|listen to|read|watch|wear|buy|fly|stay in) {THING}\w",
)

NAMES = rule(
    MemoryType.FACT,
    0.95,
    r"my (?:full |first |last |real )?name(?:'s| is) \w",
    r"i(?:'m| am) called \w",
    r"i go by \w",
    r"(?:everyone|everybody|people|my friends|most people) calls? me \w",
)
GIVEN_NAME = rule(
    MemoryType.FACT,
    0.85,
    r"I(?:['’]m| am) (?!(?:I|Ok|Okay|Sorry|Sure|Fine|Done|Back|Here|Good|Not|Just|In|So|Trying)\b)"
    r"[A-Z][a-zà-ÿ]{1,15}(?: [A-Z][a-zà-ÿ]{1,15})?$",
    as_written=True,
)
CALL_ME = rule(
    MemoryType.FACT,
    0.95,
    r"(?:please |just |you can |but )?call me "
    r"(?!back|crazy|later|when|if|in|at|on|an?\b|the|up|maybe|old|stupid|paranoid|tomorrow|now|"
    r"again|tonight|out|by)[\w.'-]{1,30}(?: \w{1,30})?$",
    explicit=True,
)

PLANS = rule(
    MemoryType.TODO_HINT,
    0.85,
    r"(?:i|we)(?:'ve| have)? (?:need|have|must|got|ought|plan|want|am supposed|should)(?: to)? "
    r"(?!go now|to know|know|show that|prove)\w",
    r"(?:i|we)(?:'ll| will|'m going to| am going to|'re going to| are going to|'m gonna) "
    r"(?!see you|talk|try again|be back|come back|let you|ask you|tell you|go to bed|sleep)\w",
    rf"{I_HAVE} (?:an?|my|the|another|two|three) (?:\w+(?:'s)? ){{0,4}}{EVENT}\b",
    rf"(?:my|our|the) (?:\w+(?:'s)? ){{0,3}}{EVENT} "
    r"(?:is|are|starts?|begins?|for|takes place|to)\b",
    r"(?:my|our) (?:\w+ ){1,4}"
    r"(?:expires?|(?:is|are) due|ends?|starts?|arrives?|comes?|runs? out|opens|closes)\b",
    r"(?:my|our|the) (?:\w+ ){1,4}(?:has to|have to|needs? to|must) \w",
    r"(?:i|we) (?:start|leave|fly|travel|move|meet|take|graduate|go|have|host|return|arrive)\b",
    r"(?:i|we)(?:'m| am|'re| are) (?!thinking|wondering|looking|trying|asking|hoping|feeling|"
    r"considering|freaking|guessing|being|doing|having (?:trouble|problems|issues|a hard))"
    r"(?:getting |going )?[a-z]{2,12}ing\b",
    r"(?:tomorrow|tonight|next \w+|on \w+(?: \d+)?|in \w+ \w+),? "
    r"(?:i|we)(?:'m|'ll| am| will)? "
    r"(?!see you|might|think|got\b|went|had\b|was\b|saw|met\b|made|did\b|took|came|\w+ed\b)\w",
    dated=True,
)
REMINDERS = rule(
    MemoryType.TODO_HINT,
    0.9,
    r"(?:don't forget|do not forget|remember) (?:to|about) \w",
    explicit=True,
    dated=True,
)
OWED = rule(
    MemoryType.TODO_HINT,
    0.85,
    r"(?:i|we)(?:'ve| have)? (?:need|have|must|got|ought|am supposed)(?: to)? "
    r"(?!a\b|an\b|the\b|no\b)\w",
    wished=True,
)

LIFE = rule(
    MemoryType.FACT,
    0.9,
    r"i (?:currently |still |now )?live (?:in|near|with|at|on|alone|outside|by|close to) "
    r"(?!fear|a world|the moment|this|that)\w",
    r"(?:i|we)(?:'ve| have)? (?:just |recently |finally )?(?:moved|relocated) "
    r"(?:house|home|(?:back )?(?:to|from|into|in with|out|here)\b)",
    rf"{I_AM}(?:from|based in|living in|located in) (?!the future|here\b|there\b)\w",
    r"i (?:was born|grew up|was raised) (?:in|on) \w",
    r"my (?:birthday|bday|anniversary)(?:'s| is|'s on| is on| falls on) \w",
    r"i turn(?:ed)? [0-9]{1,3}\b",
    rf"{I_AM}(?:[0-9]{{1,3}}(?: ?(?:years old|y/?o|yrs old))?$|[0-9]{{1,3}} years old)",
    rf"{I_AM}(?:[0-9]{{3}} ?cm\b|(?:left|right)-handed)",
    rf"my (?:\w+ )?{KIN}(?:'s)? (?:name(?:'s| is)|is called|is named|goes by) \w",
    rf"my (?:\w+ )?{KIN} (?:lives?|works?|turns|was born|(?:has|have) (?:an?|{COUNTED})) \w",
    rf"my (?:\w+ )?{KIN} (?:is|are) (?!\w+ing\b|angry|mad|sick|ill\b|tired|asleep|here|upset|not|"
    r"really|so\b|too\b|right|wrong|driving|being|very|about|on\b|in trouble|late|away)\w",
    rf"{I_HAVE} {COUNTED} (?:\w+ ){{0,3}}{OWNED}"
    r"(?=$|[,.;-]| (?:named|called|and|who|with|at|in|behind|from|aged|of my)\b)",
    r"(?:i|we) (?:just )?(?:got|adopted|bought) (?:married|engaged|an? (?:\w+ ){0,2}"
    r"(?:dog|cat|puppy|kitten|house|flat|apartment|car|baby))\b",
    rf"{I_AM}(?:married|single|engaged|divorced|widowed)\b",
    r"my (?:current |home |work |e-?mail |phone |native |first |mother |shoe |shirt |dress )?"
    r"(?:time ?zone|address|e-?mail|phone number|number|job|job title|occupation|hometown|"
    r"language|tongue|company|employer|car|nickname|pronouns|age|height|size|nationality|hobby|"
    r"hobbies|major|zodiac sign|star sign|blood type)(?:'s| is| are) "
    r"(?!broken|slow|not\b|wrong|gone|dead|\w+ing\b|hard|so\b|too\b)\w",
    r"i (?:drive|own|ride) (?!it\b|this|that|along)\w",
    r"i use (?:a|an) (?:wheelchair|screen reader|hearing aid|mac|macbook|pc|iphone|android)\b",
    r"i(?:'m| am) (?:diabetic|pregnant|autistic|deaf|blind)\b",
    r"i (?:have|suffer from) (?:\w+ )?(?:diabetes|asthma|adhd|depression|anxiety|migraines|"
    r"epilepsy|arthritis|insomnia)\b",
)
"""Where and with whom the user lives, and what is theirs."""

DOINGS = rule(
    MemoryType.FACT,
    0.9,
    r"i (?:currently |now )?work (?:as|at|for|in|from|part|nights|remotely|full)\b(?! it\b)",
    rf"{I_AM}an? (?!bit|little|lot|disaster|monster|loser|winner|goner)"
    rf"(?:[a-z-]+ ){{0,3}}{OCCUPATION}"
    r"(?=$|[,;]| (?:at|in|for|from|by|with|and|who|of)\b)",
    rf"{I_AM}(?:retired|self-employed|a stay-at-home)\b",
    rf"{I_AM}(?:learning|studying|training to be|majoring in) (?!how|that|this)\w",
    r"i (?:study|studied|major in|majored in|teach|graduated) (?!this|that|it\b)\w",
    r"i (?:can )?speak (?!to|with|for|of|about)\w",
    r"i (?:play|practi[sc]e|collect) (?!it\b|this|that|along)\w",
    r"i(?:'ve| have) (?:been )?(?:lived?|living|work(?:ed|ing)|married|learning|playing) "
    r"(?:in|at|as|for|with|since)\b",
    r"i(?:'ve| have) been (?!trying|having|getting|waiting|looking|thinking|wondering|told)"
    r"\w{2,12}ing [^,]{1,60} (?:for (?:\w+ ){1,3}years|since [0-9]{4})\b",
    r"i(?:'ve| have) (?:run|climbed|won|published|visited) (?!it\b|this|that|the\b|into)\w",
    r"i (?:usually|normally|always|typically) (?:wake|get up|go to bed|go running|work|run|"
    r"exercise|have breakfast|have lunch|have dinner|commute|cycle|take the)\b",
    r"i (?:run|swim|cycle|jog|meditate|train|get up|wake up|work out|commute|go to) "
    r"[^,]{0,40}every (?:day|morning|evening|night|week|weekend|month|\w+day)\b",
)
"""What the user does: work, study, sports, habits."""

RULES = (
    *(NEEDS, NAMES, GIVEN_NAME, CALL_ME, FROM_NOW_ON, ORDERS, TASTES),
    *(PLANS, REMINDERS, OWED, LIFE, DOINGS),
)
"""The first that fits counts."""
