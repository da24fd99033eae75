"""Words for dates in English; text is folded, so in lower case."""

import re
from datetime import date

from memory_service.domain.dates import calendar
from memory_service.domain.dates.calendar import Span
from memory_service.domain.dates.mention import pattern

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_STEPS = {"this": 0, "next": 1, "last": -1}

_WHOLE_WEEKDAY = r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
_WEEKDAY = (
    r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b"
)
_MONTH = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november"
    r"|december|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?(?![0-9:])"
_YEAR = r"(?:,? (?P<year>(?:19|20)[0-9]{2})\b)?"
_COUNT = rf"(?P<count>[0-9]{{1,3}}|{'|'.join(_NUMBERS)}|an)"
_UNIT = r"(?P<unit>day|week|month|year)s?\b"
_STEP = r"(?P<step>this|next|last)"
_DUE = r"\b(?:by|on|until|till|before|due)"


def _count(found: re.Match[str]) -> int:
    word = found["count"]
    if word.isdecimal():
        return int(word)
    return 1 if word in {"a", "an"} else _NUMBERS.index(word)


def _shift(found: re.Match[str], today: date, *, back: bool = False) -> Span | None:
    count = -_count(found) if back else _count(found)
    match found["unit"]:
        case "day":
            return calendar.day(today, count)
        case "week":
            return calendar.day(today, 7 * count)
        case "month":
            return calendar.months_later(today, count)
        case _:
            return calendar.months_later(today, 12 * count)


def _ago(found: re.Match[str], today: date) -> Span | None:
    return _shift(found, today, back=True)


def _unit(found: re.Match[str], today: date) -> Span | None:
    step = _STEPS.get(found["step"], 0)
    match found["unit"]:
        case "week":
            return calendar.week(today, step)
        case "weekend":
            return calendar.weekend(today, step)
        case "month":
            return calendar.month(today.year, today.month + step)
        case _:
            return calendar.year(today.year + step)


def _end(found: re.Match[str], today: date) -> Span | None:
    return calendar.last_day(_unit(found, today))


def _weekday(found: re.Match[str]) -> int:
    return _WEEKDAYS.index(found["weekday"][:3])


def _this_weekday(found: re.Match[str], today: date) -> Span | None:
    return calendar.weekday_of_week(today, _weekday(found), _STEPS[found["step"]])


def _next_weekday(found: re.Match[str], today: date) -> Span | None:
    return calendar.next_weekday(today, _weekday(found))


def _date(found: re.Match[str], today: date) -> Span | None:
    month, day = _MONTHS.index(found["month"][:3]) + 1, int(found["day"])
    if found["year"]:
        return calendar.day_of_month(calendar.month(int(found["year"]), month), day)
    return calendar.next_date(today, day, month)


def _iso(found: re.Match[str], _: date) -> Span | None:
    days = calendar.month(int(found["year"]), int(found["month"]))
    return calendar.day_of_month(days, int(found["day"]))


def _day_of_month(found: re.Match[str], today: date) -> Span | None:
    return calendar.next_day_of_month(today, int(found["day"]))


def _month(found: re.Match[str], today: date) -> Span | None:
    return calendar.next_month(today, _MONTHS.index(found["month"][:3]) + 1)


PATTERNS = (
    pattern(r"\b(?P<year>(?:19|20)[0-9]{2})-(?P<month>[01][0-9])-(?P<day>[0-3][0-9])\b", _iso),
    pattern(r"\bday after tomorrow\b", lambda _, today: calendar.day(today, 2)),
    pattern(r"\bday before yesterday\b", lambda _, today: calendar.day(today, -2)),
    pattern(r"\b(?:tomorrow|tmrw|tmr)\b", lambda _, today: calendar.day(today, 1)),
    pattern(r"\b(?:yesterday|last night)\b", lambda _, today: calendar.day(today, -1)),
    pattern(
        r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b",
        lambda _, today: calendar.day(today, 0),
    ),
    pattern(rf"\b(?:in|within) {_COUNT} {_UNIT}", _shift),
    pattern(rf"\b{_COUNT} {_UNIT} from (?:now|today)\b", _shift),
    pattern(rf"\b{_COUNT} {_UNIT} ago\b", _ago),
    pattern(rf"\bend of (?:the |{_STEP} )?(?P<unit>week|month|year)\b", _end),
    pattern(rf"\b{_STEP} {_WEEKDAY}", _this_weekday),
    pattern(rf"\b{_STEP} (?P<unit>week|weekend|month|year)\b", _unit),
    pattern(rf"\b{_DAY}(?: of)? {_MONTH}{_YEAR}", _date, bare=True),
    pattern(rf"\b{_MONTH} (?:the )?{_DAY}{_YEAR}", _date, bare=True),
    pattern(rf"{_DUE} the (?P<day>[0-3]?[0-9])(?:st|nd|rd|th)\b", _day_of_month, bare=True),
    pattern(rf"{_DUE} {_WEEKDAY}", _next_weekday, bare=True),
    pattern(r"\b(?:at|on|over|by) the (?P<step>)(?P<unit>weekend)\b", _unit, bare=True),
    pattern(rf"\b{_WHOLE_WEEKDAY}", _next_weekday, bare=True),
    pattern(rf"\b(?:in|by|before|until) {_MONTH}(?! [0-9])", _month, bare=True),
)
