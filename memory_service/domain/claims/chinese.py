"""Claims of Chinese statements."""

import re
from collections.abc import Iterable, Sequence

from memory_service.domain.claims.claim import MANY, Claim, Slot

_CLAUSES = re.compile(
    r"[，,;；。！!\n](?!而不是|不是|而非|胜过|因为|由于|尤其|特别是)|但是|但我|(?:而且|并且)(?=我)"
)
_PUNCTUATION = re.compile(r"[\s\"'“”‘’「」『』.。!！?？~～:：、，,;；]+$|^[\s\"'“”.。,，]+")
_LEAD = re.compile(
    r"^(?:请?(?:记住|记得|注意)(?:一下)?[，,:：]?|请|麻烦|其实|对了|另外|现在|目前|如今|今后|以后|从现在起|"
    r"最近|今年|去年|昨天|今天|前几天|上个?(?:月|周|星期)|刚刚|刚)[，,]?"
)
_PARTICLES = re.compile(r"(?:了|啦|吧|呢|哦|啊|呀|的)+$")
_SELF = re.compile(
    r"^(?:我本人|本人|我|这?个?用户|俺|咱)(?!们|家|的|妈|爸|妹|姐|哥|弟|老|儿|女|朋)"
)
_OWN = re.compile(r"^(?:我|用户|本人)的?")
_FILLER = re.compile(
    r"现在|目前|已经|其实|真的|一直|最近|非常|特别(?!是)|比较|十分|超级?|很|也|还|都|就|又|总是|更(?=喜欢|爱|偏)"
)
_NEGATION = re.compile(
    r"再也不|不再|不要|不太|不能|不想|不会|没那么|没有|戒掉?了?|不(?!错|同|仅|但|过(?!敏)|是)|没|别|勿|禁止"
)
_LIMITS = re.compile(r"但|除了|除非|如果|要是|只|有时|偶尔|夏天|冬天|周末|暂时|临时|一半")
_DETAIL = re.compile(
    r"[，,;；（(]|因为|由于|尤其|特别是|每天|每周|早上|晚上|的时候|和(?:我|家人|父母|妻子|老婆|老公|女友|男友)"
)
_ITEMS = re.compile(r"、|和|跟|与|以及|还有")
_AGAINST = re.compile(r"[，,]?(?:而不是|而非|不是|胜过|多过)(?P<against>.+)$")
_THAN = re.compile(
    r"(?:比起|相比|相较于|与)(?P<against>[^，,]+?)(?:来说|而言|相比)?[，,]?(?=我|更|还是)"
)

_LANGUAGES = "中文|英文|英语|汉语|普通话|日语|日文|法语|德语|西班牙语|韩语|俄语|粤语"
_ONE_VALUE = (
    "名字|全名|姓名|昵称|生日|出生日期|年龄|地址|邮箱|电子邮箱|电话|电话号码|手机|手机号|手机号码|工作|职业|"
    "公司|家乡|老家|时区|母语|身高|体重|鞋码|尺码|预算|截止日期|薪水|工资|血型|星座"
)
_PATTERNS: tuple[tuple[Slot, re.Pattern[str]], ...] = (
    (
        Slot.HOME,
        re.compile(
            "^(?P<about>.*?)(?:居住在|住在|定居在|定居于|定居|家在|搬家到|搬到|搬去|搬来|搬回)(?P<value>.+)$"
        ),
    ),
    (Slot.WORKPLACE, re.compile("^(?P<about>.*?)在(?P<value>.+?)(?:工作|上班|任职|就职)$")),
    (
        Slot.WORKPLACE,
        re.compile("^(?P<about>.*?)(?:就职于|任职于|入职|跳槽到|跳槽去)(?P<value>.+)$"),
    ),
    (Slot.ADDRESSED, re.compile("^(?P<about>)(?:叫我|称呼我为?|喊我)(?P<value>.+)$")),
    (
        Slot.ATTRIBUTE,
        re.compile(
            f"^(?P<about>.*?)(?P<thing>{_ONE_VALUE}|最喜欢的?[^是]{{1,8}})"
            "(?:是|叫|改成|换成|变成|改为|为|在)(?P<value>.+)$"
        ),
    ),
    (Slot.AGE, re.compile(r"^(?P<about>.*?)(?P<value>\d{1,3})岁$")),
    (
        Slot.MARRIAGE,
        re.compile("^(?P<about>.*?)(?:是)?(?P<value>单身|已婚|未婚|结婚|离婚|离异|订婚)$"),
    ),
    (
        Slot.LANGUAGE,
        re.compile(
            f"^(?P<about>)(?:用|使用|说|讲)(?P<value>{_LANGUAGES})(?:来|跟我|和我|给我)*"
            "(?:回答|回复|交流|沟通|写|说|聊)?.{0,4}$"
        ),
    ),
    (Slot.ALLERGY, re.compile("^(?P<about>.*?)对(?P<value>.+?)过敏$")),
    (Slot.SPEAKS, re.compile(f"^(?P<about>.*?)(?:会说|会讲|说|讲)(?P<value>(?:{_LANGUAGES}).*)$")),
    (
        Slot.PREFERS,
        re.compile("^(?P<about>.*?)(?:更喜欢|更爱|更偏好|更倾向于?|偏爱|偏好|首选)(?P<value>.+)$"),
    ),
    (
        Slot.LIKES,
        re.compile("^(?P<about>.*?)(?P<hates>讨厌|厌恶|受不了|反感)(?P<value>.+)$"),
    ),
    (Slot.LIKES, re.compile("^(?P<about>.*?)(?:喜欢|喜爱|热爱|爱)(?P<value>.+)$")),
)
_VERB = re.compile("^(?:喝|吃)")
_SAME = (("汉语", "中文"), ("普通话", "中文"), ("英文", "英语"), ("日文", "日语"), ("未婚", "单身"))


def chinese_claims(text: str) -> Sequence[Claim]:
    """Read the clauses of a normalised statement."""
    plain = re.sub(r"\s+", "", text)
    clauses = (_stripped(clause) for clause in _CLAUSES.split(plain))
    return [_claim(clause) for clause in clauses if clause]


def _stripped(clause: str) -> str:
    """Take away what says nothing about the matter, at both ends and within."""
    before = ""
    while before != clause:
        before = clause
        clause = _LEAD.sub("", _PARTICLES.sub("", _PUNCTUATION.sub("", clause)))
    clause = _SELF.sub("", clause)
    prefers = re.search("更喜欢|更爱|更偏好|更倾向", clause)
    without = _LEAD.sub("", _FILLER.sub("", clause))
    return without.replace(prefers[0][1:], prefers[0], 1) if prefers else without


def _claim(clause: str) -> Claim:
    kept, against = _compared(clause)
    positive, negations = _NEGATION.subn("", kept)
    negative = negations % 2 == 1
    words = tuple(_same(positive + "".join(against)))
    for slot, pattern in _PATTERNS:
        match = pattern.match(positive)
        if match:
            return _filled(slot, match, words, negative=negative, against=against)
    return Claim(words=words, negative=negative)


def _compared(clause: str) -> tuple[str, Sequence[str]]:
    """Cut off what a preference is for something else than."""
    than = _THAN.search(clause)
    if than:
        return clause[: than.start()] + _SELF.sub("", clause[than.end() :]), (than["against"],)
    match = _AGAINST.search(clause)
    if match is None or not re.search("喜欢|偏|爱|倾向", clause[: match.start()]):
        return clause, ()
    return clause[: match.start()], (match["against"],)


def _filled(
    slot: Slot,
    match: re.Match[str],
    words: tuple[str, ...],
    *,
    negative: bool,
    against: Iterable[str],
) -> Claim:
    value = match["value"]
    end = _DETAIL.search(value)
    head, detail = (value, "") if end is None else (value[: end.start()], value[end.start() :])
    values = _values(_ITEMS.split(head) if slot in MANY else [head])
    if not values:
        return Claim(words=words, negative=negative)
    groups = match.groupdict()
    return Claim(
        words=words,
        negative=negative != bool(groups.get("hates")),
        slot=slot,
        about=_OWN.sub("", match["about"]) + (groups.get("thing") or "").replace("的", ""),
        values=values,
        against=_values(item for each in against for item in _ITEMS.split(each)),
        detail=tuple(detail),
        limited=_LIMITS.search(value) is not None,
    )


def _values(values: Iterable[str]) -> frozenset[str]:
    found = (_same(_VERB.sub("", _PARTICLES.sub("", value))) for value in values)
    return frozenset(value for value in found if value)


def _same(text: str) -> str:
    for word, plain in _SAME:
        text = text.replace(word, plain)
    return text
