"""Which messages only say yes, no, or that they were heard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_service.domain.acknowledgement import ACKNOWLEDGEMENTS, is_acknowledgement, recall_text


@pytest.mark.parametrize(
    "message",
    ["好", "好的", "好的！", " 嗯。", "收到", "ok", "OK!!", "Yes.", "no", "Got it 👍", "ok~"],
)
def test_short_approvals_and_refusals_are_acknowledgements(message: str) -> None:
    assert is_acknowledgement(message)
    assert recall_text(message) == ""


@pytest.mark.parametrize(
    "message",
    ["", "  ", "!?", "ok then, what may I eat?", "好吃吗", "not yes", "what", "好的，订周二的"],
)
def test_what_says_more_or_nothing_is_none(message: str) -> None:
    assert not is_acknowledgement(message)
    assert recall_text(message) == message


@given(st.sampled_from(sorted(ACKNOWLEDGEMENTS)), st.text("!?.,。！～ \n👍", max_size=4))
def test_punctuation_case_and_blanks_around_are_nothing(word: str, around: str) -> None:
    assert is_acknowledgement(f"{around}{word.upper()}{around}")
