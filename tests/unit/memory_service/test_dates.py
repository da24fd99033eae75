"""Relative dates, English and Chinese, against the day they were said."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.dates.resolve import end_of_day, mentions, with_note
from memory_service.domain.fold import fold

WEDNESDAY = date(2024, 3, 13)


def days(text: str, today: date = WEDNESDAY) -> list[str]:
    return [str(mention.days) for mention in mentions(fold(text), today)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", "2024-03-13"),
        ("tonight", "2024-03-13"),
        ("Tomorrow", "2024-03-14"),
        ("the day after tomorrow", "2024-03-15"),
        ("the day before yesterday", "2024-03-11"),
        ("yesterday", "2024-03-12"),
        ("in 3 days", "2024-03-16"),
        ("in a week", "2024-03-20"),
        ("within ten days", "2024-03-23"),
        ("two weeks from now", "2024-03-27"),
        ("in seven months", "2024-10-13"),
        ("in an year", "2025-03-13"),
        ("3 days ago", "2024-03-10"),
        ("a month ago", "2024-02-13"),
        ("this Friday", "2024-03-15"),
        ("next Friday", "2024-03-22"),
        ("next Mon", "2024-03-18"),
        ("last Friday", "2024-03-08"),
        ("by Friday", "2024-03-15"),
        ("on Wed", "2024-03-20"),
        ("Sunday evening", "2024-03-17"),
        ("next week", "2024-03-18 – 2024-03-24"),
        ("this weekend", "2024-03-16 – 2024-03-17"),
        ("at the weekend", "2024-03-16 – 2024-03-17"),
        ("next month", "2024-04"),
        ("last year", "2023"),
        ("by the end of the month", "2024-03-31"),
        ("end of next year", "2025-12-31"),
        ("end of the week", "2024-03-17"),
        ("on 5 May", "2024-05-05"),
        ("on May 5th", "2024-05-05"),
        ("the 1st of March", "2025-03-01"),
        ("March 13", "2024-03-13"),
        ("Sept. 3, 2031", "2031-09-03"),
        ("29 February", "2028-02-29"),
        ("by 2024-04-30", "2024-04-30"),
        ("by the 15th", "2024-03-15"),
        ("on the 2nd", "2024-04-02"),
        ("in June", "2024-06"),
        ("before February", "2025-02"),
        ("今天", "2024-03-13"),
        ("今晚", "2024-03-13"),
        ("明天", "2024-03-14"),
        ("后天", "2024-03-15"),
        ("後天", "2024-03-15"),
        ("大后天", "2024-03-16"),
        ("昨晚", "2024-03-12"),
        ("前天", "2024-03-11"),
        ("大前天", "2024-03-10"),
        ("周五前", "2024-03-15"),
        ("星期三", "2024-03-20"),
        ("礼拜天", "2024-03-17"),
        ("下周三", "2024-03-20"),
        ("下個禮拜三", "2024-03-20"),
        ("下下周一", "2024-03-25"),
        ("上周五", "2024-03-08"),
        ("这周六", "2024-03-16"),
        ("周末", "2024-03-16 – 2024-03-17"),
        ("下周末", "2024-03-23 – 2024-03-24"),
        ("下周", "2024-03-18 – 2024-03-24"),
        ("下个月", "2024-04"),
        ("上个月", "2024-02"),
        ("三天后", "2024-03-16"),
        ("十二天之后", "2024-03-25"),
        ("两周后", "2024-03-27"),
        ("二十天内", "2024-04-02"),
        ("3个月后", "2024-06-13"),
        ("半年后", "2024-09-13"),
        ("半年前", "2023-09-13"),
        ("两年前", "2022-03-13"),
        ("月底", "2024-03-31"),
        ("下月底", "2024-04-30"),
        ("下个月5号", "2024-04-05"),
        ("年底", "2024-12-31"),
        ("明年底", "2025-12-31"),
        ("去年", "2023"),
        ("今年", "2024"),
        ("5月5日", "2024-05-05"),
        ("十二月二十五号", "2024-12-25"),
        ("3月1日", "2025-03-01"),
        ("2026年3月1日", "2026-03-01"),
        ("15号", "2024-03-15"),
        ("1号", "2024-04-01"),
    ],
)
def test_a_date_is_found(text: str, expected: str) -> None:
    assert days(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "every Friday",
        "on Fridays",
        "in 3 hours",
        "31 April",
        "February 30th",
        "2024-13-40",
        "May I ask?",
        "in a while",
        "以后天天",
        "每周五",
        "每个月5号",
        "一周五天",
        "5号线",
        "13月40日",
        "九十九月一号",
        "十十天后的事",
        "二二天后",
        "一十一十天后",
        "聪明天真",
        "从今天起",
        "三点前",
        "第三天前",
    ],
)
def test_what_is_no_date_or_comes_back_is_none(text: str) -> None:
    assert days(text) == []


def test_the_more_telling_words_count() -> None:
    assert days("the day after tomorrow, then by Friday") == ["2024-03-15", "2024-03-15"]
    assert days("下周三和周五") == ["2024-03-20", "2024-03-15"]


def test_months_that_are_too_short_end_early() -> None:
    assert days("in a month", date(2024, 1, 31)) == ["2024-02-29"]
    assert days("一个月后", date(2023, 1, 31)) == ["2023-02-28"]


def test_a_weekday_is_another_day_than_today() -> None:
    assert days("on Wednesday") == ["2024-03-20"]


def test_the_ends_of_the_calendar_are_no_dates() -> None:
    assert days("tomorrow, next week, next weekend", date(9998, 12, 31)) == []
    assert days("next month, next year, 明年底", date(9998, 12, 31)) == []
    assert days("in June, 5 June", date(9998, 12, 31)) == []
    assert days("yesterday", date.min) == []


@pytest.mark.parametrize(
    ("content", "noted"),
    [
        ("I start tomorrow", "I start tomorrow (2024-03-14)"),
        ("我明天开始", "我明天开始（2024-03-14）"),
        ("from tomorrow until Friday", "from tomorrow until Friday (2024-03-14, 2024-03-15)"),
        ("today, tonight", "today, tonight (2024-03-13)"),
        ("明天、后天、大后天", "明天、后天、大后天（2024-03-14、2024-03-15）"),
        ("by 2024-04-30", "by 2024-04-30"),
        ("2026年3月1日", "2026年3月1日"),
        ("some day", "some day"),
    ],
)
def test_a_note_says_what_the_words_leave_open(content: str, noted: str) -> None:
    assert with_note(content, mentions(fold(content), WEDNESDAY)) == noted


def test_a_day_ends_where_it_was_said() -> None:
    said = datetime.fromisoformat("2024-03-10T23:30:00+08:00")
    end = end_of_day(date(2024, 3, 11), said)
    assert end.astimezone(UTC) == datetime(2024, 3, 11, 16, tzinfo=UTC)


@given(st.text(st.characters()), st.dates())
def test_any_text_on_any_day_can_be_looked_at(text: str, today: date) -> None:
    folded = fold(text)
    assert len(folded) == len(text)
    for mention in mentions(folded, today):
        assert 0 <= mention.start < mention.end <= len(text)
        assert mention.days.first <= mention.days.last
