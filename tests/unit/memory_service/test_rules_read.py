"""What the rules read out of turns."""

import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.fold import fold
from memory_service.domain.ingest import Extraction, Fact, Intent, Turn, TurnMessage
from memory_service.domain.model import MemoryType, Role
from memory_service.domain.rules.read import read_turn
from memory_service.domain.secrets import holds_secret

NOTE = re.compile(r"(?: \(|（)[0-9 ,、–-]{4,50}[)）]$")
WEDNESDAY = "2024-03-13T09:30:00+08:00"


def says(
    *texts: str, role: Role = Role.USER, at: str = WEDNESDAY, zone: str = "Asia/Shanghai"
) -> Extraction:
    messages = tuple(
        TurnMessage(role=role, content=text, create_time=datetime.fromisoformat(at), timezone=zone)
        for text in texts
    )
    return read_turn(Turn(user_id="u", conversation_id="c", messages=messages))


def only(text: str, at: str = WEDNESDAY, zone: str = "Asia/Shanghai") -> Fact:
    (fact,) = says(text, at=at, zone=zone).facts
    return fact


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM, Role.TOOL])
def test_nothing_is_read_out_of_what_others_say(role: Role) -> None:
    assert says("I adore Oslo. Remember that I'm vegan. 我住在上海。", role=role).facts == ()


def test_what_the_assistant_adores_is_no_fact_of_the_user() -> None:
    said = datetime.fromisoformat(WEDNESDAY)
    turn = Turn(
        user_id="u",
        conversation_id="c",
        messages=(
            TurnMessage(role=Role.USER, content="name a city", create_time=said),
            TurnMessage(role=Role.ASSISTANT, content="I adore Oslo", create_time=said),
        ),
    )
    assert read_turn(turn).facts == ()


def test_recalled_memories_in_a_prompt_are_not_read_again() -> None:
    said = datetime.fromisoformat(WEDNESDAY)
    recalled = TurnMessage(
        role=Role.SYSTEM, content="[preference] I prefer black coffee", create_time=said
    )
    asked = TurnMessage(role=Role.USER, content="what should I drink?", create_time=said)
    turn = Turn(user_id="u", conversation_id="c", messages=(recalled, asked))
    assert [read_turn(turn).facts for _ in range(5)] == [()] * 5


def test_tomorrow_is_the_day_after_the_message_in_its_own_zone() -> None:
    fact = only("tomorrow I start", at="2024-03-10T23:30:00+08:00", zone="+08:00")
    assert fact.content == "tomorrow I start (2024-03-11)"
    assert fact.expire_time == datetime.fromisoformat("2024-03-12T12:00:00+08:00")


def test_tomorrow_is_another_day_elsewhere() -> None:
    at = "2024-03-10T23:30:00+08:00"
    assert "2024-03-11" in only("I fly home tomorrow", at=at, zone="UTC").content
    assert "2024-03-12" in only("I fly home tomorrow", at=at, zone="Pacific/Auckland").content


def test_chinese_stays_chinese_to_the_byte() -> None:
    assert only("記住我對花生過敏！").content == "我對花生過敏"
    assert only("我喜欢　龙井茶～").content == "我喜欢　龙井茶"


def test_three_chinese_facts_are_three_facts() -> None:
    facts = says("我喜欢茶", "我住在海边", "我会说粤语").facts
    assert [fact.content for fact in facts] == ["我喜欢茶", "我住在海边", "我会说粤语"]


def test_a_due_day_is_written_beside_the_words_and_ends_the_to_do() -> None:
    fact = only("我周五前要交英语作文")
    assert fact.content == "我周五前要交英语作文（2024-03-15）"
    assert fact.expire_time == datetime.fromisoformat("2024-03-16T12:00:00+08:00")
    assert only("I need to hand it in by Friday").content.endswith("by Friday (2024-03-15)")


def test_a_to_do_without_a_day_has_no_end_of_its_own() -> None:
    assert only("remind me to buy milk").expire_time is None


def test_the_wish_to_remember_is_taken_off_and_marked() -> None:
    fact = only("Please remember that I’m allergic to peanuts.")
    assert fact.content == "I’m allergic to peanuts"
    assert (fact.memory_type, fact.is_explicit) == (MemoryType.CONSTRAINT, True)
    assert fact.sensitivity_level == 0


@pytest.mark.parametrize(
    "text",
    [
        "actually I prefer tea now, not coffee",
        "Oh, actually I prefer tea",
        "I no longer eat meat",
        "I don't like coffee anymore",
        "I like tea, not coffee now",
        "I prefer tea instead of coffee",
        "I moved to Oslo",
        "我搬到成都了",
        "其实我更喜欢茶",
        "我不再喝咖啡了",
        "我现在不吃肉了",
    ],
)
def test_who_takes_back_what_was_said_before_means_it(text: str) -> None:
    assert only(text).is_explicit


@pytest.mark.parametrize("text", ["I prefer tea", "I live in Oslo now", "我喜欢茶"])
def test_a_plain_statement_is_not_explicit(text: str) -> None:
    assert not only(text).is_explicit


@pytest.mark.parametrize("text", ["I'm vegan, remember that", "我吃素，记住了"])
def test_the_wish_may_come_last(text: str) -> None:
    fact = only(text)
    assert fact.is_explicit
    assert fact.content in {"I'm vegan", "我吃素"}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("I'm allergic to peanuts", 0),
        ("I don't eat pork", 0),
        ("I live in Oslo", 0),
        ("remember that I take insulin for my diabetes", 1),
        ("remember that my salary is 4000 euros", 1),
        ("记住我有糖尿病", 1),
        ("remember that I'm gay", 2),
        ("I am a Christian", 2),
        ("记住我是穆斯林", 2),
    ],
)
def test_what_people_would_not_expect_to_be_kept_is_marked(text: str, level: int) -> None:
    assert only(text).sensitivity_level == level


def test_a_secret_is_read_so_that_it_can_be_refused() -> None:
    assert holds_secret(only("remember that my password is hunter2").content)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("I like tea", Intent.PREFERENCE),
        ("I live in Oslo", Intent.PERSONAL_FACT),
        ("从现在起，不要用表情符号", Intent.STANDING_INSTRUCTION),
        ("write a poem about rain", Intent.TASK_REQUEST),
        ("who wrote Hamlet?", Intent.KNOWLEDGE_QA),
        ("红楼梦的作者是谁", Intent.KNOWLEDGE_QA),
        ("haha", Intent.CHITCHAT),
        ("", Intent.CHITCHAT),
    ],
)
def test_the_intent_says_what_was_wanted(text: str, intent: Intent) -> None:
    read = says(text)
    assert read.intent is intent
    assert intent.stores == bool(read.facts)


def test_the_same_said_twice_is_one_fact() -> None:
    assert len(says("I like tea. I like  TEA!", "I like tea").facts) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Don't save this. I'm allergic to shrimp.",
        "Please don't store that. I live in Bonn",
        "Forget that I like tea",
        "忘记我喜欢猫",
        "忘了我喜欢狗吧",
        "别再记住我喜欢狗了",
        "不要记录，我住在波恩",
    ],
)
def test_of_what_shall_not_be_kept_nothing_is(text: str) -> None:
    assert says(text).facts == ()


@pytest.mark.parametrize("text", ["I can't remember that", "好的，记住了", "记住啊", "你要记住哦"])
def test_scraps_are_no_facts(text: str) -> None:
    assert says(text).facts == ()


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("I'm vegetarian, suggest a dinner", "I'm vegetarian"),
        ("我对花生过敏，晚饭吃什么？", "我对花生过敏"),
        ("记住我对花生过敏，晚饭吃什么？", "我对花生过敏"),
    ],
)
def test_what_is_asked_behind_a_statement_is_no_part_of_it(text: str, content: str) -> None:
    assert [fact.content for fact in says(text).facts] == [content]


def test_all_facts_of_a_turn_are_read_up_to_a_bound() -> None:
    facts = says("My name is Ann. I like jam. I like rum. I'm allergic to bees.").facts
    assert [fact.content for fact in facts][2:] == ["I like rum", "I'm allergic to bees"]
    many = says(" ".join(f"I like thing{n}." for n in range(30))).facts
    assert [fact.content for fact in many] == [f"I like thing{n}" for n in range(20)]


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("I work for Dr. Smith. I like tea.", ["I work for Dr. Smith", "I like tea"]),
        ("I live in Oslo!I like tea", ["I live in Oslo!I like tea"]),
        ("我住在上海。我喜欢茶！", ["我住在上海", "我喜欢茶"]),
        ("I like tea.\nDear Ann,\nI live in Oslo.", ["I like tea"]),
        ("Subject: hi\nI live in Oslo.", []),
        ("I like tea\nHere is my text:\nI live in Oslo.", ["I like tea"]),
        ("A bit about me:\nI live in Oslo.", ["I live in Oslo"]),
        ("I like tea\n~~~\nI live in Oslo\n~~~\nI like jam", ["I like tea", "I like jam"]),
        ("- I live in Oslo\n2) I like tea\n    I like jam", []),
        ("He said: “I like tea. I live in Oslo. I hate rain.”", []),
        ("“I like tea. I hate rain.” I live in Oslo.", []),
        ('I like the band "A. B." and tea', ['I like the band "A. B." and tea']),
        ("I like " + "very " * 100 + "hot tea", []),
        ("I like tea. " + "x" * 1_000, []),
        (
            "Remember that I like tea.\n" + "x " * 500 + "\nRemember I like jam",
            ["I like tea", "I like jam"],
        ),
        ("x\n" + "Remember that I like tea.\n" * 50 + "end", []),
    ],
)
def test_only_the_users_own_sentences_are_read(text: str, contents: list[str]) -> None:
    assert [fact.content for fact in says(text).facts] == contents


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("I live in Oslo and I like tea", ["I live in Oslo", "I like tea"]),
        ("我叫李明，我住在上海，我喜欢喝茶", ["我叫李明", "我住在上海", "我喜欢喝茶"]),
        ("I like tea but I don't drink it late", ["I like tea but I don't drink it late"]),
        (
            "I like tea but I don't drink it late and I live in Oslo",
            ["I like tea but I don't drink it late", "I live in Oslo"],
        ),
        ("the sky is blue and I like tea", []),
        ("remember that it rains and I like tea", ["it rains and I like tea"]),
        ("I like tea, and you, remember that", ["I like tea, and you"]),
    ],
)
def test_statements_joined_by_and_are_facts_each(text: str, contents: list[str]) -> None:
    assert [fact.content for fact in says(text).facts] == contents


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Don't use emojis.", True),
        ("Write a poem. Don't use emojis.", False),
        ("Write a poem. From now on, don't use emojis.", True),
        ("Write a poem. Remember: don't use emojis.", True),
        ("I'm vegan. Suggest a dinner.", True),
        ("Translate this. I'm vegan.", False),
        ("不要用表情。", True),
        ("写一首诗。不要用表情。", False),
        ("写一首诗。以后不要用表情。", True),
    ],
)
def test_what_concerns_a_task_is_not_kept(text: str, kept: bool) -> None:  # noqa: FBT001 - a row
    assert bool(says(text).facts) is kept


def test_a_folded_text_has_each_character_in_its_place() -> None:
    assert fold("İ’M “LÄUFT” 對，１！") == 'İ\'m "läuft" 对,1!'


PIECES = st.sampled_from(
    [
        "I like tea",
        "Remember that",
        "我喜欢",
        "不要",
        "tomorrow",
        "周五前",
        "\ud83d",
        "👩\u200d🚀",
        "\u200b",
        "İ",
        "\0",
        '"',
        "```",
        "\n",
        ". ",
        "？",
        "99999",
        "31 February",
        "in 999 years",
        "九十九月九十九日",
        "十十天后",
        "\u2028",
    ]
)
TEXTS = st.text(st.characters()) | st.lists(PIECES | st.text(max_size=5)).map(" ".join)
TIMES = st.datetimes().map(lambda time: time.isoformat())


@given(st.lists(TEXTS, max_size=4), st.sampled_from(list(Role)), TIMES, st.text() | TEXTS)
def test_any_turn_can_be_read(texts: list[str], role: Role, at: str, zone: str) -> None:
    read = says(*texts, role=role, at=at, zone=zone)
    assert read == says(*texts, role=role, at=at, zone=zone)
    assert len(read.facts) <= (3 if role is Role.USER else 0)
    for fact in read.facts:
        words = NOTE.sub("", fact.content)
        assert words
        assert any(words in text for text in texts)
        assert fact.confidence is not None
        assert 0.5 <= fact.confidence <= 1
