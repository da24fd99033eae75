"""What history and jobs keep is read again as it was."""

import json
from dataclasses import fields
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memory_service.adapters.sql.documents import (
    document,
    to_decision,
    to_memory,
    to_outcome,
    to_turn,
)
from memory_service.domain.ingest import (
    Action,
    Candidate,
    Decision,
    IngestOutcome,
    Reason,
    Relation,
    Turn,
    TurnMessage,
)
from memory_service.domain.model import IndexState, Memory, MemoryStatus, MemoryType, Role

TEXT = st.text(max_size=8)
TIME = st.datetimes(timezones=st.just(UTC))
MEMORIES = st.builds(
    Memory,
    memory_id=TEXT,
    memory_type=st.sampled_from(MemoryType),
    status=st.sampled_from(MemoryStatus),
    index_state=st.sampled_from(IndexState),
    role=st.none() | st.sampled_from(Role),
    metadata=st.dictionaries(TEXT, st.one_of(st.integers(), TEXT, st.lists(TEXT))),
    event_ids=st.lists(TEXT).map(tuple),
    **dict.fromkeys(("create_time", "update_time"), TIME),
    **dict.fromkeys(("expire_time", "last_access_time", "occur_time"), st.none() | TIME),
)
DECISIONS = st.builds(
    Decision,
    fact=MEMORIES,
    action=st.sampled_from(Action),
    reason=st.sampled_from(Reason),
    superseded_ids=st.lists(TEXT).map(tuple),
    candidates=st.lists(
        st.builds(
            Candidate,
            memory_id=TEXT,
            score=st.floats(0, 1),
            relation=st.sampled_from(Relation),
        )
    ).map(tuple),
)
TURNS = st.builds(
    Turn,
    messages=st.lists(
        st.builds(TurnMessage, role=st.sampled_from(Role), content=TEXT, create_time=TIME)
    ).map(tuple),
)


@given(MEMORIES)
def test_a_memory(memory: Memory) -> None:
    assert to_memory(json.loads(json.dumps(document(memory)))) == memory


@given(DECISIONS)
def test_a_decision(decision: Decision) -> None:
    assert to_decision(json.loads(json.dumps(document(decision)))) == decision


@given(TURNS)
def test_a_turn(turn: Turn) -> None:
    assert to_turn(json.loads(json.dumps(document(turn)))) == turn


@given(st.lists(DECISIONS, max_size=3).map(tuple), st.lists(TEXT).map(tuple))
def test_an_outcome(decisions: tuple[Decision, ...], warnings: tuple[str, ...]) -> None:
    outcome = IngestOutcome(intent="preference", decisions=decisions, warnings=warnings)
    assert to_outcome(json.loads(json.dumps(document(outcome)))) == outcome


def test_a_document_of_an_older_version_takes_the_defaults_and_an_unknown_type_is_unknown() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    whole = Memory(
        memory_id="m",
        user_id="u",
        memory_type=MemoryType.FACT,
        content="c",
        normalized_content="c",
        content_hash="h",
        create_time=now,
        update_time=now,
    )
    kept = document(whole) | {"memory_type": "of a newer version"}
    required = {"memory_id", "user_id", "content", "normalized_content", "content_hash"}
    required |= {"memory_type", "create_time", "update_time"}
    for field in fields(Memory):
        if field.name not in required:
            del kept[field.name]
    assert to_memory(kept).memory_type is MemoryType.UNKNOWN
    assert to_memory(kept).version == 1
