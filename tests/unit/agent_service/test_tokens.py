"""Counting tokens: exact with toktok, estimated without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_service.adapters import tokens_toktok
from agent_service.adapters.tokens_toktok import ToktokCounter, default_counter
from agent_service.domain.tokens import ByteClassEstimate, FunctionCounter, TokenCounter

COUNTERS: list[TokenCounter] = [
    FunctionCounter(len),
    ByteClassEstimate(),
    ByteClassEstimate(correction=0.5),
    ToktokCounter(),
    ToktokCounter("cl100k_base"),
]
ANY_TEXT = (
    st.text()
    | st.text(st.characters())
    | st.sampled_from(
        ["ok\ud83d", "<|endoftext|>", "\0", "用户" * 50, "👨‍👩‍👧‍👦" * 9, " " * 1000, "\udfff" * 3]
    )
)


@given(texts=st.lists(ANY_TEXT, max_size=4), counter=st.sampled_from(COUNTERS))
def test_a_counter_counts_any_text_the_same_alone_and_together(
    texts: list[str], counter: TokenCounter
) -> None:
    counts = list(counter.count_many(texts))
    assert counts == [counter.count_many([text])[0] for text in texts]
    assert all((count > 0) == bool(text) for count, text in zip(counts, texts, strict=True))


@given(text=ANY_TEXT, limit=st.integers(-1, 60), counter=st.sampled_from(COUNTERS))
def test_a_counter_truncates_to_a_prefix_that_fits(
    text: str, limit: int, counter: TokenCounter
) -> None:
    prefix = counter.truncate(text, limit)
    assert text.startswith(prefix)
    assert counter.count_many([prefix])[0] <= max(limit, 0)
    if counter.count_many([text])[0] <= limit:
        assert prefix == text


@given(text=st.text(max_size=300), limit=st.integers(0, 100))
def test_a_function_counter_finds_the_longest_prefix(text: str, limit: int) -> None:
    counter = FunctionCounter(lambda part: (len(part) + 2) // 3)
    assert counter.truncate(text, limit) == text[: 3 * limit]


def test_an_estimate_is_above_what_the_model_counts_for_common_text() -> None:
    texts = [
        "The meeting moved to Thursday, so please tell everyone who was invited. " * 20,
        "用户偏好：所有回答必须使用中文，并且保持简洁。" * 20,
        "请把 meeting 改到周四，and tell everyone 谢谢。" * 20,
        'def add(a, b):\n    return a + b\n\n{"id": 12345, "name": "x"}\n' * 20,
        "Встреча перенесена на четверг, сообщите всем приглашённым. " * 20,
        "😀🎉👍" * 20,
    ]
    estimates = ByteClassEstimate().count_many(texts)
    for estimate, count in zip(estimates, ToktokCounter().count_many(texts), strict=True):
        assert count <= estimate <= 2.5 * count


def test_an_estimate_cuts_between_characters_and_gives_nothing_for_no_room() -> None:
    estimate = ByteClassEstimate()
    assert estimate.truncate("用户偏好", 0) == ""
    assert estimate.truncate("用户偏好", -3) == ""
    assert estimate.truncate("用户偏好", 3) == "用户"
    assert estimate.truncate("用户偏好", 100) == "用户偏好"


def test_an_estimate_learns_from_what_the_model_counted() -> None:
    estimate = ByteClassEstimate()
    text = "some text of the usual kind " * 50
    raw = estimate.count_many([text])[0] / 1.3
    for _ in range(50):
        predicted = estimate.count_many([text])[0]
        estimate = estimate.observe(predicted=predicted, actual=round(raw * 0.8))
    assert estimate.correction == pytest.approx(0.8, abs=0.01)
    assert estimate.count_many([text])[0] == pytest.approx(raw * 0.8 * 1.3, rel=0.01)


def test_an_estimate_stays_within_reason_whatever_it_is_told() -> None:
    estimate = ByteClassEstimate()
    assert estimate.observe(predicted=0, actual=10) is estimate
    assert estimate.observe(predicted=10, actual=0) is estimate
    assert estimate.observe(predicted=1, actual=10**9).correction == 4.0
    assert estimate.observe(predicted=10**9, actual=1, weight=1).correction == 0.5


def test_toktok_reads_a_long_text_only_as_far_as_needed_and_gets_it_right() -> None:
    counter = ToktokCounter()
    text = " " * 5000 + "word " * 5000
    prefix = counter.truncate(text, 100)
    assert 90 <= counter.count_many([prefix])[0] <= 100
    assert len(prefix) > 5000


def test_much_text_is_counted_on_all_cores_with_the_same_result() -> None:
    counter = ToktokCounter()
    text = "用户偏好 and more. " * 2000
    assert counter.count_many([text] * 8) == [*counter.count_many([text])] * 8


@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        ("", "o200k_base", True),
        ("gpt-4o-mini", "o200k_base", True),
        ("openai/gpt-5", "o200k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("gpt-oss-20b", "o200k_harmony", True),
        ("deepseek-chat", "o200k_base", False),
    ],
)
def test_the_default_counter_says_whether_it_is_the_models_own(
    model: str,
    name: str,
    exact: bool,  # noqa: FBT001 — a value of the table above
) -> None:
    counter = default_counter(model)
    assert (counter.name, counter.exact) == (name, exact)
    assert counter.count_many(["hello world"]) == [2]


def test_without_toktok_the_default_counter_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_toktok, "toktok", None)
    assert default_counter("gpt-4o") == ByteClassEstimate()
    assert not default_counter().exact
