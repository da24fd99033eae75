"""Text: the hashes of the spec, and what must stay apart or together."""

import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.model import MemoryStatus, MemoryType, Role
from memory_service.domain.text import (
    active_key,
    content_hash,
    default_title,
    indexed_text,
    normalize,
    rendered_text,
    without_nul,
)
from tests.builders.memories import memory

FAMILY = "👩‍👩‍👧"


@pytest.mark.parametrize(
    ("memory_type", "content", "digest"),
    [
        (
            "preference",
            "用户偏爱黑咖啡。",
            "292b680325133ca6312dbbe56924028293bafcfc46c03ad6b3a65625466cd71e",
        ),
        (
            "constraint",
            "用户点外卖不要香菜。",
            "08242540d066fb959ff55a258f92b0e9ff2013db9135aece54c5568cfa424e84",
        ),
        (
            "fact",
            "User  Lives in\tShanghai ",
            "5281dc4a0deeb29b40e2886fcfc21f9bd0bb04be5081c11c38f6fa0267896173",
        ),
    ],
)
def test_the_hashes_of_the_spec_come_out(memory_type: str, content: str, digest: str) -> None:
    assert content_hash(MemoryType(memory_type), content) == digest


def test_white_space_and_case_do_not_make_another_content() -> None:
    assert normalize("User  Lives in\tShanghai ") == "user lives in shanghai"
    assert normalize(" User\u00a0LIVES\u3000in\nShanghai") == "user lives in shanghai"


def test_zero_width_characters_do_not_make_another_content() -> None:
    assert normalize("\ufeffli\u200bkes\u2060 t\u200cea\u200d") == "likes tea"


def test_composed_and_decomposed_letters_are_the_same_content() -> None:
    assert normalize("CAFE\u0301") == normalize("caf\u00e9") == "caf\u00e9"


def test_three_chinese_contents_have_three_hashes() -> None:
    texts = ("喜欢茶", "住在海边", "会弹琴")
    assert len({content_hash(MemoryType.FACT, text) for text in texts}) == 3


def test_every_character_normalises_once_and_for_all() -> None:
    for code in range(sys.maxunicode + 1):
        once = normalize(f"a{chr(code)}b{chr(code)}")
        assert normalize(once) == once


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@given(st.text())
def test_normalising_loses_no_letter(text: str) -> None:
    assert sum(map(str.isalpha, normalize(text))) >= 1 or not any(map(str.isalpha, text))


def test_the_active_key_is_the_hash_while_active_and_nothing_after() -> None:
    row = memory()
    assert active_key(row) == row.content_hash
    for status in set(MemoryStatus) - {MemoryStatus.ACTIVE}:
        assert active_key(memory(status=status)) is None


def test_the_same_words_in_two_turns_are_two_verbatim_rows() -> None:
    said = datetime(2023, 5, 8, 9, tzinfo=UTC)

    def key(
        turn_id: str = "t1", occur_time: datetime | None = said, words: str = "Yes."
    ) -> str | None:
        return active_key(
            memory(
                content=words,
                is_verbatim=True,
                conversation_id="c1",
                turn_id=turn_id,
                occur_time=occur_time,
            )
        )

    assert key() == key(occur_time=said.astimezone(timezone(timedelta(hours=8))))
    different = {key(), key(turn_id="t2"), key(occur_time=None), key(words="Yes")}
    assert len(different) == 4


def test_an_echo_of_the_assistant_does_not_stand_in_the_way_of_what_the_user_said() -> None:
    mine, echo, unknown = (
        active_key(memory(content="Ok", is_verbatim=True, turn_id="t1", role=role))
        for role in (Role.USER, Role.ASSISTANT, None)
    )
    assert mine == unknown != echo


def test_the_indexed_text_names_date_and_speaker_as_far_as_known() -> None:
    said = datetime(2023, 5, 8, 23, 30, tzinfo=UTC)
    assert indexed_text(memory(content="Hi!")) == "Hi!"
    assert indexed_text(memory(content="Hi!", speaker="Anna")) == "Anna: Hi!"
    assert indexed_text(memory(content="Hi!", occur_time=said)) == "(8 May 2023) Hi!"
    assert (
        indexed_text(memory(content="Hi!", title="unseen", speaker="Anna", occur_time=said))
        == "(8 May 2023) Anna: Hi!"
    )


def test_the_indexed_date_is_the_day_in_utc() -> None:
    east = datetime(2023, 5, 9, 7, 30, tzinfo=timezone(timedelta(hours=8)))
    assert indexed_text(memory(content="Hi!", occur_time=east)) == "(8 May 2023) Hi!"


def test_an_unknown_type_reads_like_a_fact() -> None:
    fact = memory(content="Likes  TEA")
    unknown = memory(content="Likes tea", memory_type=MemoryType.UNKNOWN)
    assert rendered_text(fact) == rendered_text(unknown) == "fact::likes tea"
    assert rendered_text(memory(content="", title="A Title")) == "fact::a title"


def test_only_nul_is_removed() -> None:
    assert without_nul("a\0b\0 \x01\ufeff\u200b") == "ab \x01\ufeff\u200b"


def test_a_title_is_the_first_24_characters() -> None:
    assert default_title("User likes black coffee, without sugar") == "User likes black coffee,"
    assert default_title("喜" * 30) == "喜" * 24
    assert default_title("short") == "short"


def test_a_title_never_cuts_a_character_and_fits_256_bytes() -> None:
    title = default_title(FAMILY * 30)
    assert title == FAMILY * 14
    assert len(title.encode()) <= 256


@given(st.text())
def test_a_title_is_a_beginning_within_256_bytes(content: str) -> None:
    title = default_title(content)
    assert content.startswith(title)
    assert len(title.encode()) <= 256
