"""JSON as models write it: whatever comes is read or refused, and nothing unfinished gets in."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_service.domain.errors import ModelUnreadable
from memory_service.domain.loose_json import DEEPEST, LONGEST, read_json


def facts(text: str) -> Any:
    value = read_json(text, ("facts",)).value
    return value["facts"] if isinstance(value, dict) else value


def whole(text: str) -> bool:
    return read_json(text, ("facts",)).whole


def test_a18_a_fence_and_prose_behind_it_are_passed_over() -> None:
    assert facts('```json {"facts":["f"]} ``` That is all.') == ["f"]
    assert facts('Sure!\n```\n{"facts": ["f"]}\n```\n') == ["f"]


def test_a19_a_fence_inside_a_string_is_text() -> None:
    text = '{"facts":["snippet: ```py x=1```"]}'
    assert facts(text) == ["snippet: ```py x=1```"]
    assert facts(f"```json\n{text}\n```") == ["snippet: ```py x=1```"]


@pytest.mark.parametrize(
    "text",
    [
        '<think>{"facts":["draft"]}</think>{"facts":["final"]}',
        '<THINK>\n{"facts":["draft"]}\n</THINK>\n{"facts":["final"]}',
        '{"facts":["draft"]}</think>{"facts":["final"]}',
        '<think>a <think> in a {"facts":["draft"]}</think> b</think>{"facts":["final"]}',
        '<reasoning>{"facts":["draft</reasoning>{"facts":["final"]}',
        'As a draft: {"facts":["draft"]}. Better: {"facts":["final"]}',
        '{"facts":["draft", oh no. {"facts":["final"]}',
    ],
)
def test_a20_drafts_and_thoughts_are_no_answer(text: str) -> None:
    assert facts(text) == ["final"]


def test_a20_words_about_thoughts_inside_a_string_are_text() -> None:
    assert facts('{"facts":["likes <think> and </think>"]}') == ["likes <think> and </think>"]


@pytest.mark.parametrize("text", ['<think>{"facts":["draft"]}', '{"facts":["draft"]}</think>'])
def test_thoughts_alone_are_unreadable(text: str) -> None:
    with pytest.raises(ModelUnreadable):
        facts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"facts":["f1","f2","f3 is', ["f1", "f2"]),
        ('{"facts":["f1","f2"', ["f1", "f2"]),
        ('{"facts":["f1",', ["f1"]),
        ('{"facts":["f1", "a [\\"facts\\": {', ["f1"]),
        ('{"facts":[{"content":"f1"},{"content":"f2","sensitivity_', [{"content": "f1"}]),
        ('{"facts":[{"content":"f1"},{"content":"f2","tags":["x"', [{"content": "f1"}]),
        ('[{"content":"f1"},{"content":"f2"', [{"content": "f1"}]),
        ('{"facts":[["f1"],["f2"', [["f1"]]),
        ('{"facts":[\n', []),
        ('{"facts":{"content":"f1"', {"content": "f1"}),
    ],
)
def test_a21_of_an_answer_that_was_cut_everything_finished_is_kept(
    text: str, expected: object
) -> None:
    assert facts(text) == expected
    assert not whole(text)


@pytest.mark.parametrize(
    "text",
    [
        'Use {{name}} here. ```json {"facts":["ok"]} ``` bye}',
        'The set {1, 2} and [see 3] and {"x": 1}: {"facts":["ok"]}',
        'I found [1] this: {"facts":["ok"]} and [2] that.',
        'He said "use { and [". {"facts":["ok"]}',
        '[ {"facts":["ok"]} ]}}]',
    ],
)
def test_a22_brackets_in_the_prose_hide_nothing(text: str) -> None:
    found = facts(text)
    assert found in (["ok"], [{"facts": ["ok"]}])


def test_a39_half_a_character_becomes_a_replacement_and_pairs_are_joined() -> None:
    assert facts('{"facts":["\\ud83d"]}') == ["�"]
    assert facts('{"facts":["\\ud83d\\ude00 \\ude00\\ud83d"]}') == ["😀 ��"]


def test_a40_nul_is_dropped() -> None:
    assert facts('{"facts":["a\\u0000b\0c"]}') == ["abc"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"facts":["f",],}', ["f"]),
        ('{"facts":["a\nb"]}', ["a\nb"]),
        (r'{"facts":["C:\\a \n \t \/ \" it\'s \d \u12"]}', ["C:\\a \n \t / \" it\\'s \\d \\u12"]),
        ('{"facts":[NaN, Infinity, -Infinity, 1e999, null, None]}', [None] * 6),
        ('{"facts":[true, True, false, False]}', [True, True, False, False]),
        ('{"facts":[0, -0.5, 07, 1.5e2]}', [0, -0.5, 7, 150.0]),
        ('{"facts":["first"], "facts":["last"]}', ["last"]),
        ('["a"]', ["a"]),
        ("[]", []),
    ],
)
def test_what_models_do_to_json_is_understood(text: str, expected: object) -> None:
    assert facts(text) == expected
    assert whole(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"facts":["a "quoted" word", "b"]}', []),
        ('{"facts":["f", "a "quoted" word"]}', ["f"]),
        ('{"facts":[1 "f"]}', [1]),
        ('{"facts":["f"] "more": 1}', ["f"]),
        ('{"facts":["f"], "more": "a "quoted" word"}', ["f"]),
        ('{"facts":["f"], "more"= 1}', ["f"]),
        ('{"facts":["f"], : 1}', ["f"]),
        ('{"facts":["f"], 1: 1}', ["f"]),
        ('{"facts":["f"], {"a": 1}}', ["f"]),
        ('{"facts":["f",,"g"]}', ["f"]),
        ('{"facts":["f"}', ["f"]),
        ('{"facts":["f"]]', ["f"]),
        ('{\'facts\': 1, "facts":["f"]}', ["f"]),
        (f'{{"facts":[{"9" * 41}]}}', []),
    ],
)
def test_of_what_is_no_json_all_is_kept_that_stands_before_the_fault(
    text: str, expected: object
) -> None:
    assert facts(text) == expected


@pytest.mark.parametrize(
    "text", ["", "No facts.", "{}", '"facts"', '{"fact":["f"]}', "{'facts':['f']}", "null", "}]"]
)
def test_an_answer_without_what_was_asked_for_is_unreadable(text: str) -> None:
    with pytest.raises(ModelUnreadable, match="no JSON of the form asked for"):
        facts(text)


def test_an_object_goes_before_a_list_and_a_whole_one_before_a_broken_one() -> None:
    assert facts('{"facts":["f"]} ["g"]') == ["f"]
    assert facts('["g"] {"facts":["f"') == ["f"]
    assert facts('{"facts":["f"]} {"facts":["g"') == ["f"]


def test_what_nests_too_deep_is_broken() -> None:
    deep = '{"facts":' + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1) + "}"
    assert whole(deep)
    deeper = '{"facts":' + "[" * DEEPEST + "]" * DEEPEST + "}"
    assert not whole(deeper)


def test_a_very_long_answer_is_read_up_to_a_limit() -> None:
    text = '{"facts":["f","' + "x" * LONGEST + '"]}'
    assert facts(text) == ["f"]
    assert not whole(text)
    assert not whole('{"facts":["f"]}' + " " * LONGEST)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def clean(value: Any) -> Any:
    """Give what becomes of the strings inside."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [clean(each) for each in value]
    if isinstance(value, dict):
        return {clean(name): clean(each) for name, each in value.items()}
    return value


@given(st.lists(_JSON, max_size=4), st.sampled_from([True, False]))
def test_all_json_comes_back_as_it_was_written(items: list[Any], escaped: object) -> None:
    text = json.dumps({"facts": items}, ensure_ascii=bool(escaped))
    assert facts(text) == clean(items)
    assert facts(f"Here: ```json\n{text}\n``` {{done}}") == clean(items)


@given(st.lists(st.dictionaries(st.text(), st.text(), min_size=1), min_size=1), st.data())
def test_wherever_it_is_cut_only_whole_items_are_left(
    items: list[dict[str, str]], data: st.DataObject
) -> None:
    text = json.dumps({"facts": items})
    cut = data.draw(st.integers(len('{"facts": ['), len(text) - 1))
    found = facts(text[:cut])
    assert found == clean(items)[: len(found)]
    ends = [len(json.dumps({"facts": items[:count]})) - 2 for count in range(1, len(items) + 1)]
    assert len(found) == sum(end <= cut for end in ends)


@given(st.text(alphabet='{}[]",:\\ \n`<>/think01.e-NaNtrueé😀\ud800\0') | st.text())
@example("[" * 5000)
@example('{"facts":' * 5000)
@example('[",[],",' * 5000)
def test_any_text_is_read_or_unreadable(text: str) -> None:
    try:
        found = read_json(text, ("facts",))
    except ModelUnreadable:
        return
    json.dumps(found.value, allow_nan=False).encode()


@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 3), st.text(alphabet='{}[]",:\\ a0')),
        max_size=6,
    )
)
def test_any_damage_is_read_or_unreadable(damages: list[tuple[int, int, str]]) -> None:
    text = json.dumps({"message_intent": "preference", "facts": [{"content": "tea", "n": 0.5}] * 3})
    for place, length, put in damages:
        text = text[:place] + put + text[place + length :]
    test_any_text_is_read_or_unreadable.hypothesis.inner_test(text)  # type: ignore[attr-defined]


def steps(work: Callable[[], object]) -> int:
    """Count the calls that some work makes."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        work()
    except ModelUnreadable:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "piece",
    ["[", "{", '{"a":', '["[",', '[",[],",', "[[1],", '[{"a":1},', "[ ", "</think>", '{"', "[1,"],
)
def test_twice_the_garbage_takes_no_more_than_twice_the_steps(piece: str) -> None:
    once, twice = piece * 1000, piece * 2000
    assert steps(lambda: facts(twice)) <= 2 * steps(lambda: facts(once)) + 50
