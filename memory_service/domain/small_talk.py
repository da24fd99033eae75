"""Messages that no memory can answer: greetings, thanks, yes and no (RECALL 8.1)."""

import re

_LATIN_WORD = re.compile("[a-z0-9']+")
_LATIN = """
    hi hello hey there yo good morning afternoon evening night bye goodbye see you later soon
    tomorrow thanks thank thx so much very cheers ok okay k great nice cool perfect awesome
    wonderful sounds fine sure yes yeah yep no nope please right got it lol haha hmm hm well
    welcome sorry np a lot again and that s that's is was all helpful go ahead continue done
    understood i understand makes sense
"""
_LATIN_WORDS = frozenset(_LATIN.split())
_CHINESE = """
    你好 您好 嗨 哈喽 早上好 早安 晚上好 下午好 晚安 谢谢 多谢 感谢 非常 你 您 的 帮助 好 嗯
    啊 呀 哦 噢 哈 知道 明白 了 可以 不用 没问题 没事 继续 吧 行 对 是 不 再见 拜拜 明天 回头
    见 聊 太 在吗 请 呢 啦
"""
_CHINESE_WORD = re.compile("|".join(_CHINESE.split()))
"""At each place the first that fits, in this order."""


def is_small_talk(text: str) -> bool:
    """Tell whether nothing is left of a message without the words of small talk.

    Punctuation and emoji alone are small talk; a letter or digit of any other script is not.
    """
    lowered = text.lower().replace("’", "'")
    words = (word.strip("'") for word in _LATIN_WORD.findall(lowered))
    if any(word and word not in _LATIN_WORDS for word in words):
        return False
    rest = _CHINESE_WORD.sub("", _LATIN_WORD.sub("", lowered))
    return not any(character.isalnum() for character in rest)
