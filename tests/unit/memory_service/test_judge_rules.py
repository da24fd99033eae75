"""What the judge by rules says about pairs that a person judged; `-s` prints its precision."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.adapters.embedder_use import UseEmbedder
from memory_service.adapters.judge_rules import RulesJudge
from memory_service.domain.claims.relate import claims, relate
from memory_service.domain.ingest import Fact, Judgement, Relation
from memory_service.domain.model import MemoryType
from tests.builders.memories import memory
from tests.builders.related_statements import PAIRS, UNSEEN, Pair


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.old} / {pair.new}")
def test_statements_relate_as_a_person_says(pair: Pair) -> None:
    assert relate(pair.new, pair.old) is pair.relation


def test_of_unseen_pairs_nothing_is_said_to_be_related_that_is_not() -> None:
    precision, recall = _figures(UNSEEN)
    assert precision == dict.fromkeys(precision, 1.0)
    assert recall >= 0.5


def _figures(pairs: Sequence[Pair]) -> tuple[dict[Relation, float], float]:
    """Give the precision of each relation but unrelated, and the recall of all of them."""
    said = [(relate(pair.new, pair.old), pair.relation) for pair in pairs]
    given_ = Counter(got for got, _ in said if got is not Relation.UNRELATED)
    right = Counter(got for got, true in said if got is true and got is not Relation.UNRELATED)
    precision = {Relation(word): right[word] / given_[word] for word in given_}
    recall = right.total() / sum(true is not Relation.UNRELATED for _, true in said)
    print(f"\nprecision of {len(pairs)} pairs: {precision}; recall {recall:.2f}")  # noqa: T201 — asked for
    return precision, recall


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_can_be_compared(new: str, old: str) -> None:
    assert relate(new, old) in set(Relation)


@given(st.sampled_from([pair.new for pair in PAIRS]))
def test_what_is_said_again_in_the_same_words_is_a_duplicate(text: str) -> None:
    assert relate(text, text) is Relation.DUPLICATE


def test_texts_longer_than_a_statement_are_not_read() -> None:
    assert claims("I like tea. " * 100) == ()
    assert relate("I like tea. " * 100, "I like tea") is Relation.UNRELATED


@pytest.mark.parametrize(
    "hostile",
    ["(" * 1000, "i " * 500, "not " * 250, "my favorite " * 80, "我" * 1000, "'s my " * 160],
)
def test_hostile_texts_are_read_too(hostile: str) -> None:
    assert relate(hostile, "I like tea") is Relation.UNRELATED


async def test_each_candidate_is_judged_and_an_update_takes_the_words_of_the_fact() -> None:
    fact = Fact(memory_type=MemoryType.FACT, content="I live in Berlin, Kreuzberg")
    judged = await RulesJudge().relate(
        fact, [memory("m1", "User lives in Berlin"), memory("m2", "I live in Munich")]
    )
    assert judged == [
        Judgement(memory_id="m1", relation=Relation.UPDATE, merged=fact.content),
        Judgement(memory_id="m2", relation=Relation.CONFLICT),
    ]


async def test_related_statements_lie_above_the_floor_of_the_default_embedder() -> None:
    embedder = UseEmbedder()
    related = [pair for pair in PAIRS if pair.relation is not Relation.UNRELATED]
    new = await embedder.embed_queries([pair.new for pair in related])
    old = await embedder.embed_documents([pair.old for pair in related])
    await embedder.close()
    above = np.einsum("ij,ij->i", new, old) >= embedder.likeness_floor
    others = (new @ old.T)[~np.eye(len(related), dtype=bool)] >= embedder.likeness_floor
    print(f"\nabove the floor: related {above.mean():.3f}, others {others.mean():.3f}")  # noqa: T201 — asked for
    assert above.mean() > 0.98
    assert others.mean() < 0.3
