"""Few memories and many: no constraint within its budget is pushed out, and nothing comes twice."""

from collections import Counter

from memory_service.v1 import memory_pb2 as pb
from tests.e2e.memories import CONSTRAINT, FACT, PINNED, PREFERENCE, User, contents

CITIES = ("Oslo", "Lisbon", "Kyoto", "Lima", "Accra", "上海", "Turin", "Quito", "Perth", "Malmö")
VERBS = ("visited", "lived in", "wrote a book about", "wants to see", "has a friend in")
RULES = (
    "Never put peanuts into my food.",
    "Always answer in metric units.",
    "点外卖不要香菜。",
    "Do not call before ten o'clock.",
    "Never share my address.",
    "Always ask before booking anything.",
    "Must not be addressed by the first name.",
)
QUERIES = (
    *(f"Who {verb} {city}?" for verb in VERBS for city in CITIES[:4]),
    *(f"{city} {number}" for city in CITIES for number in (3, 17)),
    "他去过上海吗？",
    "What should I cook tonight?",
    "nothing of all this matches zzz",
    "x" * 9_000,
    " ",
)


def facts(number: int) -> list[pb.Memory]:
    """Facts that are as important as the rules and say more of what is asked."""
    return [
        pb.Memory(
            memory_type=FACT,
            content=f"Person {n} {VERBS[n % len(VERBS)]} {CITIES[n % len(CITIES)]} in {n}.",
            importance=1.0,
            confidence=1.0,
        )
        for n in range(number)
    ]


def rules(number: int) -> list[pb.Memory]:
    """Constraints that rank low by all that is not their type."""
    return [
        pb.Memory(memory_type=CONSTRAINT, content=rule, importance=0.1, confidence=0.1)
        for rule in RULES[:number]
    ]


def of_type(answer: pb.RetrieveResponse, kind: int) -> list[pb.RetrievedMemory]:
    return [item for item in answer.items if item.memory.memory_type == kind]


def test_both_constraints_of_seven_memories_are_in_every_answer(embedded_user: User) -> None:
    embedded_user.create_all(facts(5) + rules(2))
    for query in QUERIES:
        for limits in ({}, {"limit": 2}, {"token_budget": 40}, {"min_relevance": 0.99}):
            answer = embedded_user.retrieve(query, **limits)
            assert {item.memory.content for item in of_type(answer, CONSTRAINT)} == set(RULES[:2])
            assert (answer.pinned_total, answer.pinned_returned) == (2, 2)
            assert all(PINNED in item.legs for item in of_type(answer, CONSTRAINT))


def test_constraints_fill_their_budget_among_two_hundred_facts(embedded_user: User) -> None:
    embedded_user.create_all(facts(200) + rules(7))
    for query in QUERIES:
        answer = embedded_user.retrieve(query)
        assert len(of_type(answer, CONSTRAINT)) == 5
        assert len(of_type(answer, FACT)) <= 5
        assert answer.dropped["type_budget"] >= 2
        assert (answer.pinned_total, answer.pinned_returned) == (7, 5)
        assert sum(answer.dropped.values()) == answer.stage_counts["allowed"] - len(answer.items)
        roomy = embedded_user.retrieve(
            query, limit=8, budgets=pb.TypeBudgets(constraint=7, fact=50), explain=True
        )
        assert {item.memory.content for item in of_type(roomy, CONSTRAINT)} == set(RULES)
        assert len(roomy.items) <= 8
        narrow = embedded_user.retrieve(query, limit=3)
        assert [item.memory.memory_type for item in narrow.items] == [CONSTRAINT] * 3


def test_a_token_budget_takes_the_constraints_last(embedded_user: User) -> None:
    embedded_user.create_all(facts(200) + rules(7))
    for budget in (30, 60, 100, 200):
        answer = embedded_user.retrieve("Who lived in Lima?", token_budget=budget)
        if of_type(answer, FACT):
            assert len(of_type(answer, CONSTRAINT)) == 5
        assert of_type(answer, CONSTRAINT)


def test_memories_that_are_equal_after_normalising_come_once(embedded_user: User) -> None:
    spellings = ("Likes green tea.", "likes  GREEN tea.", "\u200blikes\u3000green\ttea. ")
    for spelling in spellings:
        embedded_user.create(spelling, PREFERENCE)
        # Other scopes are other rows, which say the same to a caller of no scope.
        embedded_user.create(spelling, PREFERENCE, assistant_id="a1")
        embedded_user.create(spelling, PREFERENCE, assistant_id="a2", run_id="r")
    assert len(embedded_user.listed()) == 3
    for query in ("green tea", "what to drink", ""):
        answer = embedded_user.retrieve(query)
        assert len(answer.items) == 1
        assert answer.dropped["duplicate_hash"] == 2
    assert len(embedded_user.retrieve("green tea", assistant_id="a1").items) == 1


def test_no_two_items_of_any_answer_are_equal(embedded_user: User) -> None:
    doubled = [
        pb.Memory(memory_type=one.memory_type, content=f" {one.content.upper()} ", run_id="r")
        for one in facts(60) + rules(7)
    ]
    embedded_user.create_all(facts(60) + rules(7) + doubled)
    for query in QUERIES:
        answer = embedded_user.retrieve(query, budgets=pb.TypeBudgets(constraint=50, fact=200))
        said = Counter(" ".join(text.lower().split()) for text in contents(answer))
        assert not [text for text, times in said.items() if times > 1]
        hashes = [item.memory.content_hash for item in answer.items]
        assert len(set(hashes)) == len(hashes)
