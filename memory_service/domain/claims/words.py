"""Words whose meaning the rules know, in both languages: stemmed English, and Chinese as it is."""

import re
from collections.abc import Iterable

from memory_service.domain.words import stem


def _stems(*phrases: str) -> frozenset[str]:
    return frozenset(" ".join(map(stem, phrase.split())) for phrase in phrases)


def _stems_of(words: str) -> frozenset[str]:
    return _stems(*words.split())


_ALTERNATIVES = (
    _stems_of(
        "tea coffee juice water milk beer wine cola soda cocoa 茶 咖啡 果汁 水 牛奶 啤酒 酒 可乐"
    ),
    _stems("window seat", "aisle seat", "middle seat", "window", "aisle", "靠窗", "靠过道", "过道"),
    _stems("dark mode", "light mode", "dark theme", "light theme", "深色模式", "浅色模式"),
    _stems_of("metric imperial celsius fahrenheit 公制 英制 摄氏度 华氏度"),
    _stems_of("train plane car bus bike flying driving 火车 高铁 飞机 汽车 公交 自行车 地铁"),
    _stems_of("english chinese german french spanish japanese 英文 中文 英语 汉语 日语 法语"),
    _stems(
        *("short answer", "long answer", "brief answer", "detailed answer", "concise answer"),
        *(
            "short reply",
            "long reply",
            "detailed reply",
            "简短的回答",
            "详细的回答",
            "简短",
            "详细",
        ),
    ),
    _stems_of("morning afternoon evening night 早上 上午 下午 晚上"),
    _stems_of("cat dog 猫 狗"),
    _stems_of("email phone chat 邮件 电话 短信 微信"),
    _stems_of("tab space"),
)
"""Of each, people prefer one; that somebody likes one says nothing about the others."""

_COUNTRIES = _stems(
    *("germany", "france", "china", "japan", "italy", "spain", "india", "canada", "australia"),
    *("brazil", "korea", "south korea", "uk", "england", "britain", "usa", "us", "america"),
    *("united states", "united kingdom", "netherlands", "switzerland", "austria", "europe", "asia"),
    *("singapore", "russia", "mexico", "portugal", "poland", "sweden", "norway", "california"),
    *(
        "中国",
        "德国",
        "法国",
        "日本",
        "美国",
        "英国",
        "意大利",
        "西班牙",
        "印度",
        "加拿大",
        "澳大利亚",
    ),
    *("韩国", "瑞士", "荷兰", "俄罗斯", "新加坡", "欧洲", "亚洲", "加州"),
)
"""A town lies in one: claims to live in both do not contradict each other."""

_TOWN = re.compile(
    "(?:北京|上海|广州|深圳|杭州|成都|重庆|武汉|西安|南京|苏州|天津|长沙|郑州|青岛|厦门|宁波|合肥|福州|"
    "济南|昆明|沈阳|大连|哈尔滨|香港|澳门|台北|东京|纽约|伦敦|巴黎|柏林|硅谷|新加坡)"
    ".{0,4}|.{1,6}[市区县省镇村城路街]"
)


def are_alternatives(some: Iterable[str], others: Iterable[str]) -> bool:
    """Tell whether all of these are of one kind, of which one is preferred."""
    one, other = set(map(_kind_word, some)), set(map(_kind_word, others))
    return not one & other and any(one | other <= kind for kind in _ALTERNATIVES)


def _kind_word(value: str) -> str:
    """Give the word that says of which kind a value is: green tea is tea."""
    if any(value in kind for kind in _ALTERNATIVES):
        return value
    return value.rpartition(" ")[2]


def is_town(value: str) -> bool:
    """Tell whether a Chinese name is most likely that of a place, not of an employer."""
    return _TOWN.fullmatch(value) is not None


def is_country(value: str) -> bool:
    """Tell whether a place is a country, or as large as one."""
    return value in _COUNTRIES
