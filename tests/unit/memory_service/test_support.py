"""What rests on a user's words and what does not, in several scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.support import supports, words_of


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("I'm allergic to peanuts", "The user has a peanut allergy."),
        ("call me Ann", "The user's name is Ann."),
        ("tomorrow I start my new job", "The user starts a new job on 2024-03-11."),
        ("I turned 34", "The user is 34 years old."),
        ("我对花生过敏", "用户对花生过敏。"),
        ("明天我开始上班", "用户于2024-03-11开始上班。"),
        ("辛いものが苦手です", "ユーザーは辛いものが苦手。"),
        ("저는 커피를 좋아해요", "사용자는 커피를 좋아한다."),
        ("ฉันชอบชาเขียว", "ผู้ใช้ชอบชาเขียว"),
        ("Меня зовут Анна", "Пользователя зовут Анна."),
        ("Ich mag keinen Käse", "Der Nutzer mag keinen Käse."),
        ("اسمي سارة", "اسم المستخدم سارة"),
    ],
)
def test_a_fact_in_other_words_is_supported(said: str, fact: str) -> None:
    assert supports(words_of([said]), fact)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("name a city", "The user adores Oslo."),
        ("What is the weather like?", "The user is a vegetarian."),
        ("我对花生过敏", "The user is allergic to peanuts."),
        ("I'm allergic to peanuts", "用户对花生过敏。"),
        ("推荐一座城市", "用户喜欢奥斯陆。"),
        ("用户是谁？", "用户住在上海。"),
        ("", "The user likes tea."),
        ("👍", "The user likes tea."),
        ("I like tea", ""),
        ("I like tea", "👍"),
    ],
)
def test_a_fact_that_was_made_up_or_translated_is_not(said: str, fact: str) -> None:
    assert not supports(words_of([said]), fact)


def test_any_of_the_messages_may_support_it() -> None:
    assert supports(words_of(["hello", "I like tea"]), "The user likes tea.")
    assert not supports(words_of([]), "The user likes tea.")


def test_wholly_asks_for_every_word() -> None:
    said = words_of(["My kayak club moved to Mondays"])
    assert not supports(said, "The user's kayak club meets on Mondays.", wholly=True)
    assert supports(said, "The user's kayak club moved.", wholly=True)


@given(st.text(), st.text())
def test_a_text_supports_itself_or_says_nothing(text: str, other: str) -> None:
    if supports(words_of([text]), text):
        assert supports(words_of([other, text]), text, wholly=True)
    else:
        assert not supports(words_of([text, other]), text)
