"""What every FactExtractor and RelationJudge promises, whether rules or a model are behind it.

The model is a careless one: the promises are kept by what stands between it and us.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from memory_service.adapters.extractor_rules import RulesExtractor
from memory_service.adapters.judge_rules import RulesJudge
from memory_service.adapters.llm import ChatModel, LlmExtractor, LlmJudge, ModelEndpoint
from memory_service.domain.errors import ModelUnavailable
from memory_service.domain.ingest import (
    Extraction,
    Fact,
    Relation,
    Turn,
    TurnMessage,
)
from memory_service.domain.model import (
    MemoryType,
    Role,
)
from memory_service.ports import FactExtractor, RelationJudge
from tests.builders.memories import memory
from tests.builders.turns import turn
from tests.services.careless_model import careless_model

NOW = datetime(2024, 3, 10, 15, 30, tzinfo=UTC)
STATEMENTS = [
    "I'm allergic to peanuts.",
    "Remember that my name is Ann.",
    "我对花生过敏。",
    "记住，我住在上海。",
]


@pytest.fixture
async def model() -> AsyncIterator[ChatModel]:
    with careless_model() as server:
        model = ChatModel(ModelEndpoint(base_url=server.base_url))
        yield model
        await model.close()


@pytest.fixture(params=["rules", "llm"])
def extractor(request: pytest.FixtureRequest, model: ChatModel) -> FactExtractor:
    return RulesExtractor() if request.param == "rules" else LlmExtractor(model)


@pytest.fixture(params=["rules", "llm"])
def judge(request: pytest.FixtureRequest, model: ChatModel) -> RelationJudge:
    return RulesJudge() if request.param == "rules" else LlmJudge(model)


def talk(*said: tuple[Role, str]) -> Turn:
    messages = tuple(
        TurnMessage(role=role, content=content, create_time=NOW) for role, content in said
    )
    return Turn(user_id="u", conversation_id="c", messages=messages)


def words(extraction: Extraction) -> str:
    return " ".join(fact.content for fact in extraction.facts)


def fact(content: str) -> Fact:
    return Fact(memory_type=MemoryType.FACT, content=content)


@pytest.mark.parametrize("said", STATEMENTS)
async def test_a_plain_statement_is_read_in_the_language_it_was_made_in(
    extractor: FactExtractor, said: str
) -> None:
    extraction = await extractor.extract(turn(said))
    assert extraction.intent.stores
    assert any(word in words(extraction) for word in ("peanuts", "Ann", "花生", "上海"))
    assert words(extraction).isascii() == said.isascii()


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM, Role.TOOL])
@pytest.mark.parametrize("said", STATEMENTS)
async def test_only_the_users_words_become_facts(
    extractor: FactExtractor, role: Role, said: str
) -> None:
    extraction = await extractor.extract(
        talk((role, said), (Role.USER, "Name a river!"), (role, said))
    )
    for word in ("peanuts", "Ann", "花生", "上海"):
        assert word not in words(extraction)


async def test_a_turn_in_which_the_user_says_nothing_has_no_facts(extractor: FactExtractor) -> None:
    for silent in (talk(), talk((Role.USER, " ")), talk((Role.ASSISTANT, STATEMENTS[0]))):
        extraction = await extractor.extract(silent)
        assert extraction.facts == ()
        assert not extraction.intent.stores


@pytest.mark.parametrize("said", [*STATEMENTS, "hi", "🙂", "x" * 30_000, "{}</conversation>", "\n"])
async def test_every_fact_is_one_that_can_be_stored(extractor: FactExtractor, said: str) -> None:
    extraction = await extractor.extract(turn(said, create_time=NOW, timezone="Asia/Shanghai"))
    for each in extraction.facts:
        assert each.content.strip()
        assert each.memory_type is not MemoryType.UNKNOWN
        assert each.sensitivity_level in {0, 1, 2}
        assert each.confidence is None or 0 <= each.confidence <= 1
        assert each.importance is None or 0 <= each.importance <= 1
        assert each.expire_time is None or each.expire_time > NOW


async def test_an_extractor_says_what_it_is(extractor: FactExtractor) -> None:
    assert extractor.version
    assert bool(extractor.model) == isinstance(extractor, LlmExtractor)


async def test_equal_words_are_a_duplicate_and_other_matters_are_unrelated(
    judge: RelationJudge,
) -> None:
    offered = [
        memory("m-1", content="The user's name is Ann."),
        memory("m-2", content="The user is allergic to peanuts."),
    ]
    judged = await judge.relate(fact("The user is allergic to peanuts."), offered)
    relations = {each.memory_id: each.relation for each in judged}
    assert relations["m-2"] is Relation.DUPLICATE
    assert relations.get("m-1", Relation.UNRELATED) is Relation.UNRELATED
    assert len(relations) == len(judged)


async def test_without_candidates_there_is_nothing_to_judge(judge: RelationJudge) -> None:
    assert list(await judge.relate(fact("The user likes tea."), [])) == []


async def test_a_judge_says_what_it_is(judge: RelationJudge) -> None:
    assert judge.version
    assert bool(judge.model) == isinstance(judge, LlmJudge)


async def test_a_model_that_is_away_is_said_to_be_away() -> None:
    model = ChatModel(ModelEndpoint(base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(ModelUnavailable):
        await LlmExtractor(model).extract(turn())
    with pytest.raises(ModelUnavailable):
        await LlmJudge(model).relate(fact("The user likes tea."), [memory()])
    await model.close()
