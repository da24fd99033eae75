"""Words for dates in Chinese; text is folded, so with simplified characters."""

import re
from datetime import date

from memory_service.domain.dates import calendar
from memory_service.domain.dates.calendar import Span
from memory_service.domain.dates.mention import pattern

_DIGITS = "〇一二三四五六七八九"
_WEEKDAYS = "一二三四五六日"
_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_YEARS = {"前": -2, "去": -1, "今": 0, "明": 1, "后": 2}

_NUMBER = r"(?:[0-9]{1,3}|[一二两三四五六七八九十]{1,3})"
_STEP = r"(?P<step>上上|下下|上|下|这|本)(?:一?个)?"
_WEEK = r"(?:周|星期|礼拜)"
_WEEKDAY = r"(?P<weekday>[一二三四五六日天])(?![天个点次只])"
_MONTH = rf"(?P<month>{_NUMBER})月"
_DAY = rf"(?P<day>{_NUMBER})[日号](?![线楼门院机店铺房店])"
_YEAR = r"(?:(?P<year>(?:19|20)[0-9]{2})年)?"


def _number(word: str) -> int:
    """Read 12 or 十二, 二十, 两; 0 for what is no number."""
    if word.isdecimal():
        return int(word)
    tens, ten, ones = word.replace("两", "二").rpartition("十")
    if not ten:
        return _DIGITS.index(ones) if len(ones) == 1 else 0
    if len(tens) > 1 or len(ones) > 1 or tens == "十":
        return 0
    return 10 * (_DIGITS.index(tens) if tens else 1) + (_DIGITS.index(ones) if ones else 0)


def _step(found: re.Match[str]) -> int:
    word = found["step"] or ""
    return word.count("下") - word.count("上")


def _weekday(found: re.Match[str]) -> int:
    return _WEEKDAYS.index(found["weekday"].replace("天", "日"))


def _shift(found: re.Match[str], today: date) -> Span | None:
    count = _number(found["count"]) * (-1 if found["way"] == "前" else 1)
    if not count:
        return None
    match found["unit"]:
        case "天" | "日":
            return calendar.day(today, count)
        case "月":
            return calendar.months_later(today, count)
        case "年":
            return calendar.months_later(today, 12 * count)
        case _:
            return calendar.day(today, 7 * count)


def _half_year(found: re.Match[str], today: date) -> Span | None:
    return calendar.months_later(today, -6 if found["way"] == "前" else 6)


def _this_weekday(found: re.Match[str], today: date) -> Span | None:
    return calendar.weekday_of_week(today, _weekday(found), _step(found))


def _next_weekday(found: re.Match[str], today: date) -> Span | None:
    return calendar.next_weekday(today, _weekday(found))


def _month(found: re.Match[str], today: date) -> Span | None:
    return calendar.month(today.year, today.month + _step(found))


def _end_of_month(found: re.Match[str], today: date) -> Span | None:
    return calendar.last_day(_month(found, today))


def _day_of_that_month(found: re.Match[str], today: date) -> Span | None:
    return calendar.day_of_month(_month(found, today), _number(found["day"]))


def _year(found: re.Match[str], today: date) -> Span | None:
    return calendar.year(today.year + _YEARS[found["year"]])


def _end_of_year(found: re.Match[str], today: date) -> Span | None:
    return calendar.last_day(calendar.year(today.year + _YEARS.get(found["year"], 0)))


def _date(found: re.Match[str], today: date) -> Span | None:
    month, day = _number(found["month"]), _number(found["day"])
    if found["year"]:
        return calendar.day_of_month(calendar.month(int(found["year"]), month), day)
    return calendar.next_date(today, day, month)


def _day_of_month(found: re.Match[str], today: date) -> Span | None:
    return calendar.next_day_of_month(today, _number(found["day"]))


PATTERNS = (
    pattern(
        r"(?<![以之往今然最随先从聪黎])(?P<day>大前|大后|前|昨|今|明|后)(?:[天日](?!然)|晚|早|夜|儿)",
        lambda found, today: calendar.day(today, _DAYS[found["day"]]),
    ),
    pattern(
        rf"(?<![第月0-9十])(?P<count>{_NUMBER})个?(?P<unit>天|日|周|星期|礼拜|月|年)[之以]?(?P<way>[后内前])",
        _shift,
    ),
    pattern(r"半年[之以]?(?P<way>[后内前])", _half_year),
    pattern(rf"{_STEP}{_WEEK}{_WEEKDAY}", _this_weekday),
    pattern(rf"(?:{_STEP})?周末", lambda found, today: calendar.weekend(today, _step(found))),
    pattern(rf"{_STEP}{_WEEK}(?!末)", lambda found, today: calendar.week(today, _step(found))),
    pattern(rf"(?:{_STEP})?月[底末]", _end_of_month),
    pattern(rf"{_STEP}月{_DAY}", _day_of_that_month),
    pattern(rf"{_STEP}月(?![底末初])", _month),
    pattern(r"(?P<year>[今明后去])?年[底末]", _end_of_year),
    pattern(rf"{_YEAR}{_MONTH}{_DAY}", _date, bare=True),
    pattern(r"(?<![以之往])(?P<year>[前去今明后])年", _year),
    pattern(
        rf"(?<!每)(?<!每个)(?<![{_DIGITS}两十0-9上下这本]){_WEEK}{_WEEKDAY}",
        _next_weekday,
        bare=True,
    ),
    pattern(rf"(?<![月0-9{_DIGITS}十第每]){_DAY}", _day_of_month, bare=True),
)
