"""What must never be stored: keys, passwords, codes, card and identity numbers."""

import re
import unicodedata

from memory_service.domain.check_digits import holds_card_number, holds_chinese_id, holds_iban

_FORMAT_CHARACTERS = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")

_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16}"  # OpenAI, Anthropic and others
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16}"  # Stripe
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS
    r"|gh[opsur]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}"
    r"|glpat-[A-Za-z0-9_-]{16}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10}"  # Slack
    r"|AIza[A-Za-z0-9_-]{30}"  # Google
    r"|hf_[A-Za-z0-9]{30}|npm_[A-Za-z0-9]{30}|pypi-[A-Za-z0-9_-]{40}"
    r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16}"  # SendGrid
    r"|eyJ[A-Za-z0-9_-]{8,512}\.[A-Za-z0-9_-]{8}"  # JSON Web Token
    r"|[Bb]earer\s{1,3}[A-Za-z0-9._~+/-]{16}"
    r"|[a-z][a-z0-9+]{1,15}://[^\s/:@]{0,64}:[^\s/:@]{1,64}@"  # a URL with a password
    r")"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
)

_PASSWORD = re.compile(
    r"(?<![a-z])(?:password|passcode|passphrase|passwd|pwd|pw"
    r"|(?:seed|recovery|mnemonic) phrase"
    r"|(?:api|secret|access|private|auth|encryption|license)[ _-]?(?:access[ _-]?)?(?:key|token)"
    r"|client[ _-]secret)"
    r"(?:(?: (?:for|to|of|on|at) [^.,;:=!?\n]{1,40}?)?"
    r"(?P<says>\s?(?:'s|is|was|are)\s?:?|\s?(?:[:=]|->)|\s(?:set |changed )?to)|)"
    r"\s{0,3}[\"'`]?(?P<value>[^\s\"'`,;]{3,200})"
)
_NO_PASSWORD = re.compile(
    "about|all|also|always|an|and|at|bad|been|being|blank|but|can|can't|cannot|case|changed|"
    "compromised|correct|different|difficult|don't|easy|empty|encrypted|expired|fine|for|"
    "forgotten|from|going|gone|good|hard|hashed|her|hidden|his|impossible|in|incorrect|"
    "insecure|invalid|isn't|just|kept|known|leaked|least|less|long|lost|made|manager|missing|"
    "more|must|my|needed|never|new|not|now|okay|old|on|one|only|optional|our|required|reset|"
    "right|safe|same|saved|secret|secure|set|shared|short|should|something|still|stolen|"
    "stored|strong|supposed|that|the|their|this|too|under|unsafe|very|weak|what|with|without|"
    "working|written|wrong|yes|your"
    r"|[a-z]+ly"
)
_MIXED = re.compile(r"(?=[^0-9]{0,199}[0-9])(?=[0-9]{0,199}[^0-9]).{4}")
_LENGTH = re.compile(r"[0-9]{1,3}(?:-|$)")

_CODE = re.compile(
    r"(?<![a-z])(?:pin(?:[ -]?(?:code|number))?"
    r"|(?:security|verification|access|door|gate|alarm|unlock|one[- ]time|2fa|otp) (?:code|pin)"
    r"|passcode|cvv2?|cvc2?|otp)"
    r"(?: (?:for|to|of|on) [^.,;:=!?0-9\n]{1,40}?)?"
    r"\s?(?:'s|is|was|[:=]|)\s?:?\s{0,3}[\"'`]?[0-9]{3,8}(?![0-9])"
    r"|(?<![a-z])(?:ssn|social security)[^.,;!?0-9\n]{0,20}"
    r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}(?![0-9])"
)

_CHINESE = re.compile(
    r"(?:密[码碼钥鑰匙]|口令|金[钥鑰]|[验驗][证證][码碼]|安全[码碼]|pin[码碼])"
    r"(?P<says>[^,.!?。;\n]{0,12}?(?:是|[为為]|:|=|成|叫)\s{0,3}|\s{0,3})"
    r"(?P<quote>[\"'“「『]?)(?P<value>[!-~]{3,200}+)(?![位次个個年月日天])"
    r"|(?:密[码碼]|口令)(?:是|[为為]|:)[“「『\"'](?!\s)"
)


_PHRASE = re.compile(
    r"(?<![a-z])(?:password|passphrase|passcode)[^.,;:=!?\n]{0,40}?"
    r"(?:\s(?:is|was)\s?:?|\s?[:=])\s{0,3}(?P<words>[a-z]{3,20}(?: [a-z]{3,20}){2,11})"
)
"""A password of words: `correct horse battery staple`."""
_SENTENCE_WORD = re.compile(
    r"\b(?:to|the|and|but|for|from|with|that|than|because|when|if|you|your|it|its|i|my|me|"
    r"not|very|too|so|now|been|being|was|were|are|should|must|can|will|has|have|please|"
    r"again|working|today|anymore|already|also|only)\b"
)
_SPOKEN = re.compile(
    r"(?<![a-z])(?:pin|passcode|code)(?: (?:code|number))?[^.,;!?\n]{0,30}?\s?(?:is|:|=)\s{0,3}"
    r"(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)[ -]?){3,12}"
)
_LOGIN = re.compile(
    r"(?<![a-z])login\s?(?:is|:|=)\s{0,3}\S{1,64}\s{0,3}[/|,]\s{0,3}\S{3,64}"
    r"|(?<![a-z])pass(?![a-z])\s?(?:is|:|=)?\s{0,3}(?=[a-z]{0,63}[0-9])(?=[0-9]{0,63}[a-z])\w{6,64}"
    r"|(?<![a-z])passport(?: number| no\.?)?\s?(?:is|:)?\s{0,3}[a-z]{0,2}[0-9]{6,9}(?![0-9])"
    r"|[护護]照[号號]?[码碼]?\s?(?:是|为|:)?\s?[a-z]{0,2}[0-9]{7,9}(?![0-9])"
)
_CHINESE_WORDS = re.compile(
    r"(?:密[码碼]|口令)(?:是|[为為]|:)\s{0,3}(?!忘|不|没|沒|错|錯|什么|啥|多少|几|太|必|一样|一樣|"
    r"正确|安全|随机|加密|由|需要|应该|旧|新|过期|怎么|怎样|哪|对的|弱|强|简单|复杂|我|你|他|她|用|要|"
    r"可以|通过|在|为了|以前|同一|空|最|很|保护)[\u4e00-\u9fff]{3}"
    r"|(?<=记住)密[码碼]\s[!-~]{4}"
)


def holds_secret(text: str) -> bool:
    """Tell whether text holds a key, a password, a code, or a card, bank or identity number.

    Full-width characters and invisible ones hide nothing. Numbers without a check digit count
    only where they are called a password or a code: phone and order numbers are no secrets.
    """
    plain = unicodedata.normalize("NFKC", _FORMAT_CHARACTERS.sub("", text))
    plain = plain.replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
    lower = plain.lower()
    return (
        _KEY.search(plain) is not None
        or any(map(_says_password, _PASSWORD.finditer(lower)))
        or _CODE.search(lower) is not None
        or any(map(_is_phrase, _PHRASE.finditer(lower)))
        or _SPOKEN.search(lower) is not None
        or _LOGIN.search(lower) is not None
        or any(map(_says_chinese_password, _CHINESE.finditer(lower)))
        or _CHINESE_WORDS.search(lower) is not None
        or holds_card_number(plain)
        or holds_iban(plain)
        or holds_chinese_id(plain)
    )


def _says_password(match: re.Match[str]) -> bool:
    """Tell a password from a word about one; without `is` or a colon it must look like one."""
    value = match["value"].strip(".!?()[]*")
    says = (match["says"] or "").strip()
    if not says or says.endswith("to"):
        return _MIXED.match(value) is not None
    if _NO_PASSWORD.fullmatch(value) or _LENGTH.match(value):
        return value.isdecimal() and len(value) > 2  # noqa: PLR2004 - a length has two digits
    return len(value) > 2  # noqa: PLR2004 - the pattern's least length, without punctuation


def _says_chinese_password(match: re.Match[str]) -> bool:
    value = match["value"]
    return value is None or bool(match["says"].strip()) or any(map(str.isdecimal, value))


def _is_phrase(match: re.Match[str]) -> bool:
    """Tell words that are a password from a sentence about one."""
    return _SENTENCE_WORD.search(match["words"]) is None
