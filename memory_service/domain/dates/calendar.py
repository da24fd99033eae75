"""Days, weeks, months and years around a day. None stands for what no calendar has."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta

_MONTHS = 12
_WEEK = 7
_LAST_YEAR = 9998
_LAST_DAY = date(_LAST_YEAR, 12, 31).toordinal()


@dataclass(frozen=True, slots=True)
class Span:
    """From a day to a day, both in it."""

    first: date
    last: date

    def __str__(self) -> str:
        """Write 2024-03-11, 2024-03 for a whole month, 2024 for a year, or both ends."""
        if self.first == self.last:
            return self.first.isoformat()
        if self == month(self.first.year, self.first.month):
            return f"{self.first:%Y-%m}"
        if self == year(self.first.year):
            return f"{self.first:%Y}"
        return f"{self.first.isoformat()} – {self.last.isoformat()}"


def day(today: date, offset: int) -> Span | None:
    """Give the day that is offset days after today."""
    if not 1 <= today.toordinal() + offset <= _LAST_DAY:
        return None
    found = today + timedelta(days=offset)
    return Span(found, found)


def week(today: date, offset: int) -> Span | None:
    """Give Monday to Sunday of the week offset weeks after today's."""
    monday = day(today, offset * _WEEK - today.weekday())
    return monday and Span(monday.first, monday.first + timedelta(days=_WEEK - 1))


def weekend(today: date, offset: int) -> Span | None:
    """Give Saturday and Sunday of the week offset weeks after today's."""
    days = week(today, offset)
    return days and Span(days.last - timedelta(days=1), days.last)


def weekday_of_week(today: date, weekday: int, offset: int) -> Span | None:
    """Give a weekday (Monday is 0) of the week offset weeks after today's."""
    return day(today, offset * _WEEK + weekday - today.weekday())


def next_weekday(today: date, weekday: int) -> Span | None:
    """Give the first such weekday after today."""
    return day(today, (weekday - today.weekday() - 1) % _WEEK + 1)


def month(in_year: int, number: int) -> Span | None:
    """Give a month; its number may run over: month 13 is January of the next year, 0 December."""
    in_year, number = in_year + (number - 1) // _MONTHS, (number - 1) % _MONTHS + 1
    if not 1 <= in_year <= _LAST_YEAR:
        return None
    last = monthrange(in_year, number)[1]
    return Span(date(in_year, number, 1), date(in_year, number, last))


def year(number: int) -> Span | None:
    """Give a year."""
    if not 1 <= number <= _LAST_YEAR:
        return None
    return Span(date(number, 1, 1), date(number, 12, 31))


def day_of_month(days: Span | None, number: int) -> Span | None:
    """Give the day of that number in a month."""
    if days is None or not 1 <= number <= days.last.day:
        return None
    return day(days.first, number - 1)


def last_day(days: Span | None) -> Span | None:
    """Give the last day of a span."""
    return days and Span(days.last, days.last)


def next_date(today: date, number: int, of_month: int) -> Span | None:
    """Give the first such day of that month that is not before today; 29 February may wait."""
    if not 1 <= of_month <= _MONTHS:
        return None
    found = (day_of_month(month(today.year + more, of_month), number) for more in range(9))
    return next((days for days in found if days and days.first >= today), None)


def next_day_of_month(today: date, number: int) -> Span | None:
    """Give the first day of that number that is not before today."""
    found = (day_of_month(month(today.year, today.month + more), number) for more in range(3))
    return next((days for days in found if days and days.first >= today), None)


def next_month(today: date, number: int) -> Span | None:
    """Give the first such month that is not over."""
    this = month(today.year, number)
    return this if this and this.last >= today else month(today.year + 1, number)


def months_later(today: date, offset: int) -> Span | None:
    """Give the same day some months later, or the last day of a month that is too short."""
    days = month(today.year, today.month + offset)
    return days and day_of_month(days, min(today.day, days.last.day))
