from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory_service.codec.memories import MAX_ANSWER_BYTES
from memory_service.codec.retrieve import (
    RetrieveDefaults,
    batch_retrieve_request,
    retrieve_request,
    retrieve_response,
)
from memory_service.codec.stats import stats_response
from memory_service.domain.errors import InvalidRequest
from memory_service.domain.model import MemoryType, Scope
from memory_service.domain.recall import (
    Answer,
    Candidate,
    Cut,
    Dropped,
    DropReason,
    Leg,
    LegState,
    Mode,
    Query,
    Ranked,
    Source,
    TypeBudgets,
)
from memory_service.ports import StoreStats
from memory_service.v1 import memory_pb2 as pb
from tests.builders.memories import NOW, memory

UNKNOWN: Any = 9
DEFAULTS = RetrieveDefaults(
    mode=Mode.LEGACY, budgets=TypeBudgets(fact=7), min_relevance=0.2, cut=Cut.GATE
)


def test_the_server_settings_hold_where_a_request_says_nothing() -> None:
    query = retrieve_request(pb.RetrieveRequest(user_id="u1", query="a\0b"), DEFAULTS)
    assert query == Query(
        scope=Scope(user_id="u1"),
        text="ab",
        mode=Mode.LEGACY,
        budgets=TypeBudgets(fact=7),
        min_relevance=0.2,
        cut=Cut.GATE,
    )


def test_a_request_overrides_them_with_zero_too() -> None:
    request = pb.RetrieveRequest(
        user_id="u1",
        mode=pb.RETRIEVE_MODE_HYBRID,
        cut=pb.RETRIEVE_CUT_OFF,
        min_relevance=0.0,
        budgets=pb.TypeBudgets(fact=0, constraint=200),
        memory_types=[pb.MEMORY_TYPE_FACT],
        limit=9,
        token_budget=100,
        min_revision=3,
        explain=True,
        conversation_id="c",
        assistant_id="a",
        run_id="r",
    )
    query = retrieve_request(request, DEFAULTS)
    assert query == Query(
        scope=Scope(user_id="u1", assistant_id="a", run_id="r"),
        conversation_id="c",
        memory_types=frozenset({MemoryType.FACT}),
        budgets=TypeBudgets(fact=0, constraint=200),
        limit=9,
        token_budget=100,
        explain=True,
        min_revision=3,
    )


def test_everything_out_of_range_is_refused_by_path() -> None:
    request = pb.RetrieveRequest(
        query="é" * 32769,
        conversation_id="\n",
        assistant_id="\t",
        run_id="x" * 129,
        mode=UNKNOWN,
        memory_types=[pb.MEMORY_TYPE_FACT] * 5,
        budgets=pb.TypeBudgets(todo_hint=201, preference=-1),
        limit=201,
        token_budget=-1,
        min_relevance=float("nan"),
        min_revision=-1,
        cut=UNKNOWN,
    )
    with pytest.raises(InvalidRequest) as caught:
        retrieve_request(request, DEFAULTS)
    assert {violation.field for violation in caught.value.violations} == {
        "user_id",
        "query",
        "conversation_id",
        "assistant_id",
        "run_id",
        "mode",
        "memory_types",
        "budgets.todo_hint",
        "budgets.preference",
        "limit",
        "token_budget",
        "min_relevance",
        "min_revision",
        "cut",
    }


def test_each_query_of_a_batch_is_checked_by_itself() -> None:
    request = pb.BatchRetrieveRequest(user_id="u1")
    request.requests.add(query="a")
    request.requests.add(user_id="u2")
    good, bad = batch_retrieve_request(request, DEFAULTS)
    assert isinstance(good, Query)
    assert good.scope.user_id == "u1"
    assert isinstance(bad, InvalidRequest)
    assert [violation.field for violation in bad.violations] == ["requests[1].user_id"]


@pytest.mark.parametrize("count", [0, 21])
def test_a_batch_has_1_to_20_queries(count: int) -> None:
    request = pb.BatchRetrieveRequest(user_id="u1")
    request.requests.extend([pb.RetrieveRequest()] * count)
    with pytest.raises(InvalidRequest, match="requests"):
        batch_retrieve_request(request, DEFAULTS)


def ranked(number: int, memory_type: MemoryType = MemoryType.FACT, content: str = "x") -> Ranked:
    row = memory(f"m{number}", content, memory_type=memory_type)
    candidate = Candidate(
        memory=row,
        legs=frozenset({Leg.PINNED, Leg.KEYWORD}),
        relevance=0.5,
        relevance_parts={"keywords": 0.5},
    )
    return Ranked(candidate=candidate, score=1.5, score_parts={"relevance": 1.5})


ANSWER = Answer(
    items=[ranked(1)],
    sources=[
        Source(
            leg=Leg.SEMANTIC,
            state=LegState.DEGRADED,
            reason="timeout",
            candidates=4,
            elapsed=timedelta(milliseconds=3),
        )
    ],
    degraded=True,
    revision=5,
    stage_counts={"merged": 3, "returned": 1},
    dropped=[
        Dropped(memory_id="m8", reason=DropReason.CUT),
        Dropped(memory_id="m9", reason=DropReason.CUT),
    ],
    pinned_total=2,
    pinned_returned=1,
)


def test_an_answer_says_what_was_found_and_what_was_not() -> None:
    response = retrieve_response(ANSWER, explain=False)
    item = response.items[0]
    assert item.memory.memory_id == "m1"
    assert item.score == 1.5
    assert list(item.legs) == [pb.RETRIEVE_LEG_PINNED, pb.RETRIEVE_LEG_KEYWORD]
    assert not item.score_parts
    assert not item.relevance_parts
    assert response.sources[0].state == pb.SOURCE_STATE_DEGRADED
    assert response.sources[0].elapsed.ToTimedelta() == timedelta(milliseconds=3)
    assert response.degraded
    assert response.revision == 5
    assert dict(response.dropped) == {"cut": 2}
    assert (response.pinned_total, response.pinned_returned) == (2, 1)
    assert not response.dropped_memories


def test_explain_adds_parts_and_each_dropped_row() -> None:
    response = retrieve_response(ANSWER, explain=True)
    assert dict(response.items[0].score_parts) == {"relevance": 1.5}
    assert dict(response.items[0].relevance_parts) == {"keywords": 0.5}
    assert [dropped.memory_id for dropped in response.dropped_memories] == ["m8", "m9"]


@pytest.mark.parametrize("explain", [False, True])
def test_a_too_large_answer_loses_its_lowest_ranks_but_constraints_last(*, explain: bool) -> None:
    items = [ranked(number, content="é" * 8000) for number in range(300)]
    items.append(ranked(300, MemoryType.CONSTRAINT, "é" * 8000))
    large = replace(ANSWER, items=items, stage_counts={"returned": 301}, pinned_returned=301)
    response = retrieve_response(large, explain=explain)
    assert response.ByteSize() <= MAX_ANSWER_BYTES
    kept = [item.memory.memory_id for item in response.items]
    assert kept == [*(f"m{number}" for number in range(len(kept) - 1)), "m300"]
    assert response.dropped["response_bytes"] == 301 - len(kept)
    assert response.stage_counts["returned"] == len(kept)
    assert response.pinned_returned == len(kept)


def test_stats_are_given_as_counted() -> None:
    stats = StoreStats(
        revision=3,
        active_by_type={"fact": 1},
        memories_by_status={"active": 1},
        memories_by_index_state={"pending": 1},
        jobs_by_state={"done": 2},
        oldest_job=None,
    )
    assert stats_response(stats) == pb.GetStatsResponse(
        revision=3,
        active_by_type={"fact": 1},
        memories_by_status={"active": 1},
        memories_by_index_state={"pending": 1},
        jobs_by_state={"done": 2},
    )
    waiting = replace(stats, oldest_job=NOW)
    assert stats_response(waiting).oldest_job_time.ToSeconds() == int(NOW.timestamp())
