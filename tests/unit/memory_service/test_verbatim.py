"""What of a turn is kept word for word."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.ingest import Extraction, Intent
from memory_service.domain.model import MemoryType, Role, UserSettings, UserState
from memory_service.domain.secrets import holds_secret
from memory_service.domain.text import content_hash, normalize
from memory_service.domain.verbatim import Kept, verbatim
from tests.builders.facts import fact
from tests.builders.memories import NOW
from tests.builders.turns import talk, turn

NOTHING_READ = Extraction(intent=Intent.CHITCHAT)
ON = UserState(user_id="u1", settings=UserSettings(verbatim_turns_enabled=True))
USER, ASSISTANT = Role.USER, Role.ASSISTANT
LATER = NOW + timedelta(days=21)


def kept(*said: tuple[Role, str], state: UserState = ON, read: Extraction = NOTHING_READ) -> Kept:
    return verbatim(talk(*said), read, state, LATER)


def words(found: Kept) -> list[str]:
    return [memory.content for memory in found.memories]


def allowing(**settings: Any) -> UserState:
    return UserState(user_id="u1", settings=replace(ON.settings, **settings))


def test_what_user_and_assistant_say_is_kept_word_for_word_as_facts() -> None:
    said = talk(
        (USER, "  我搬到里昂了！ 🙂\r\n"),
        (ASSISTANT, "How lovely."),
        conversation_id="c1",
        turn_id="t1",
        assistant_id="a1",
        run_id="r1",
    )
    mine, answer = verbatim(said, NOTHING_READ, ON, LATER).memories
    assert (mine.content, mine.role) == ("  我搬到里昂了！ 🙂\r\n", USER)
    assert (answer.content, answer.role) == ("How lovely.", ASSISTANT)
    assert mine.normalized_content == normalize(mine.content)
    assert mine.content_hash == content_hash(MemoryType.FACT, mine.content)
    for memory, message in zip((mine, answer), said.messages, strict=True):
        assert memory.is_verbatim
        assert memory.memory_type is MemoryType.FACT
        assert (memory.user_id, memory.assistant_id, memory.run_id) == ("u1", "a1", "r1")
        assert (memory.conversation_id, memory.turn_id) == ("c1", "t1")
        assert (memory.importance, memory.confidence, memory.is_explicit) == (0.3, 0.6, False)
        assert (memory.speaker, memory.occur_time) == ("", message.create_time)
        assert (memory.create_time, memory.expire_time) == (LATER, LATER + timedelta(days=90))


def test_nothing_is_kept_unless_the_user_wants_it() -> None:
    assert kept((USER, "I like tea."), state=UserState(user_id="u1")) == Kept()
    assert words(kept((USER, "I like tea."))) == ["I like tea."]


@pytest.mark.parametrize("role", [Role.SYSTEM, Role.TOOL])
def test_system_and_tools_are_never_kept(role: Role) -> None:
    assert kept((role, "You know that the user likes tea.")) == Kept([], [])


@pytest.mark.parametrize("blank", ["", " \n\t", "\u3000", "\u200b\ufeff", "\0"])
def test_blank_messages_are_not_kept_and_nobody_is_warned(blank: str) -> None:
    assert kept((USER, blank)) == Kept([], [])


def test_a_message_over_16_kib_is_not_kept_and_that_is_said() -> None:
    longest = "茶" * 5461 + "!"
    assert len(longest.encode()) == 16 * 1024
    found = kept((USER, longest + "!"), (ASSISTANT, longest), (USER, "\0" + longest))
    assert words(found) == [longest, longest], "NUL is not stored, so it does not count"
    assert list(found.warnings) == ["too_long"]


def test_a_message_with_a_secret_is_never_kept_and_that_is_said() -> None:
    found = kept(
        (USER, "My password is hunter22."),
        (ASSISTANT, "I will not tell anyone that your password is hunter22."),
        (USER, "我的密码是hunter22"),
        (USER, "And I like tea."),
    )
    assert words(found) == ["And I like tea."]
    assert list(found.warnings) == ["secret"] * 3


def test_a_turn_is_as_sensitive_as_what_is_read_out_of_it() -> None:
    read = Extraction(
        intent=Intent.PERSONAL_FACT,
        facts=(fact("a"), fact("b", sensitivity_level=2), fact("c", sensitivity_level=1)),
    )
    said = (USER, "I have an illness, and I like tea.")
    assert kept(said, read=read) == Kept([], [])
    allowed = kept(said, read=read, state=allowing(sensitive_memory_enabled=True))
    assert [memory.sensitivity_level for memory in allowed.memories] == [2]
    odd = replace(read, facts=(fact("a", sensitivity_level=7),))
    allowed = kept(said, read=odd, state=allowing(sensitive_memory_enabled=True))
    assert [memory.sensitivity_level for memory in allowed.memories] == [2]


@pytest.mark.parametrize("setting", ["memory_enabled", "implicit_memory_enabled"])
def test_what_the_settings_forbid_is_not_kept(setting: str) -> None:
    assert kept((USER, "I like tea."), state=allowing(**{setting: False})) == Kept([], [])


def test_what_was_said_until_the_user_was_erased_is_not_kept() -> None:
    erased = replace(ON, erase_time=NOW + timedelta(seconds=10))
    found = kept((USER, "one"), (ASSISTANT, "two"), (USER, "three"), state=erased)
    assert words(found) == ["three"]


@given(st.lists(st.tuples(st.sampled_from(Role), st.text(max_size=40)), min_size=1, max_size=5))
def test_what_is_kept_was_said_by_user_or_assistant_and_holds_no_secret(
    said: list[tuple[Role, str]],
) -> None:
    found = kept(*said)
    spoken: list[tuple[Role | None, str]] = [(role, text.replace("\0", "")) for role, text in said]
    rest = iter(spoken)
    for memory in found.memories:
        assert (memory.role, memory.content) in rest, "in the order of the turn"
        assert memory.role in {USER, ASSISTANT}
        assert not holds_secret(memory.content)
    assert len(found.memories) + len(found.warnings) == sum(
        role in {USER, ASSISTANT} and normalize(text) != "" for role, text in spoken
    )


def test_one_message_is_enough() -> None:
    assert words(verbatim(turn("Hi"), NOTHING_READ, ON, LATER)) == ["Hi"]
