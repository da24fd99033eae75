from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.domain.words import STOP_WORDS, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When did Anna's sisters move to Lyon?", "anna sister move lyon"),
        ("用户不吃香菜。", "用 户 不 吃 香 菜 用户 户不 不吃 吃香 香菜"),
        ("I've been running 5 km on Mondays", "run 5 km monday"),
        (
            "我住在Berlin三年了 OK",
            "我 住 在 我住 住在 berlin 三 年 了 三年 年了 ok",
        ),
        ("What is it?", ""),
        ("User prefers tea over coffee.", "prefer tea over coffe"),
    ],
)
def test_the_tokens_of_the_worked_examples(text: str, expected: str) -> None:
    assert tokens(text) == expected.split()


def test_there_are_eighty_six_stop_words() -> None:
    assert len(STOP_WORDS) == 86


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zoë möchte Gruyère, čaj und Đà Nẵng", "zoë möchte gruyèr čaj und đà nẵng"),
        ("Ann’s café", "ann café"),
        ("l'école d’Évry at 7 o'clock", "école évri 7 clock"),
        ("İSTANBUL", "istanbul"),
    ],
)
def test_letters_with_accents_belong_to_their_word(text: str, expected: str) -> None:
    assert tokens(text) == expected.split()


def test_composed_and_decomposed_accents_are_one_word() -> None:
    assert tokens("cafe\u0301") == tokens("caf\u00e9") == ["café"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Привет, мир!", ["привет", "мир"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("저는 서울에 살아요", ["저는", "서울에", "살아요"]),
        ("مُحَمَّد", ["مُحَمَّد"]),
    ],
)
def test_words_of_other_scripts_stay_whole(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_tokens_repeat_as_often_as_they_occur() -> None:
    assert tokens("tea, Tea and teas") == ["tea", "tea", "tea"]


@pytest.mark.parametrize("text", ["", "   ", "🙂👩‍🚀", "'’'", "_-_", "\x00\ud83d"])
def test_text_without_letters_or_digits_has_no_tokens(text: str) -> None:
    assert tokens(text) == []


def test_threads_agree_on_the_stems() -> None:
    words = [f"running{i} allergies" for i in range(200)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(tokens, words)) == [tokens(word) for word in words]


@settings(deadline=None)
@given(st.text())
def test_tokens_are_never_empty_nor_stop_words_and_ignore_case(text: str) -> None:
    found = tokens(text)
    assert all(found)
    assert tokens(text.lower()) == found
