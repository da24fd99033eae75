"""Changes as answers show them."""

from dataclasses import replace

import pytest

from memory_service.codec.history import (
    entry_message,
    list_history_request,
    list_history_response,
    watch_response,
)
from memory_service.codec.memories import MAX_ANSWER_BYTES
from memory_service.codec.pages import about
from memory_service.domain.change import PastChange
from memory_service.domain.errors import InvalidRequest
from memory_service.domain.ingest import Action, Decision, Reason
from memory_service.domain.model import Operation
from memory_service.v1 import memory_pb2 as pb
from rpc.page_tokens import page_token
from tests.builders.memories import NOW, memory

CHANGE = PastChange(
    entry_id=7,
    memory_id="m1",
    version=2,
    revision=5,
    operation=Operation.UPDATE,
    actor="system",
    reason="duplicate",
    before=memory("m1", "Likes tea"),
    after=memory("m1", "Likes tea", version=2),
    decision=Decision(
        fact=memory("", "I like tea"), action=Action.NONE, reason=Reason.DUPLICATE, memory_id="m1"
    ),
    create_time=NOW,
)


def test_a_change_is_told_with_its_decision() -> None:
    told = entry_message(CHANGE)
    assert (told.memory_id, told.revision, told.actor, told.reason) == (
        "m1",
        5,
        "system",
        "duplicate",
    )
    assert told.operation == pb.HISTORY_OPERATION_UPDATE
    assert (told.before.version, told.after.version) == (1, 2)
    assert (told.decision.reason, told.decision.action) == ("duplicate", pb.DECISION_ACTION_NONE)
    assert told.create_time.ToDatetime(NOW.tzinfo) == NOW


@pytest.mark.parametrize("operation", list(Operation))
def test_each_operation_has_a_word_and_words_may_be_gone(operation: Operation) -> None:
    gone = replace(CHANGE, operation=operation, before=None, after=None, decision=None)
    told = entry_message(gone)
    assert told.operation != pb.HISTORY_OPERATION_UNSPECIFIED
    assert {field.name for field, _ in told.ListFields()}.isdisjoint(
        {"before", "after", "decision"}
    )


def changes(count: int, size: int) -> list[PastChange]:
    words = memory("m1", "x" * size)
    return [replace(CHANGE, entry_id=n, before=words, after=words) for n in range(count, 0, -1)]


def test_a_page_ends_early_where_it_would_not_fit_and_goes_on_behind_it() -> None:
    page = list_history_request(pb.ListMemoryHistoryRequest(user_id="u1", page_size=200))
    found = changes(200, 16_000)
    answer = list_history_response(found, page)
    assert 50 < len(answer.entries) < 200
    assert answer.ByteSize() <= MAX_ANSWER_BYTES
    next_page = list_history_request(
        pb.ListMemoryHistoryRequest(user_id="u1", page_token=answer.next_page_token)
    )
    assert next_page.before == found[len(answer.entries) - 1].entry_id


def test_a_token_of_another_list_or_of_no_number_is_none() -> None:
    for token in ("x", page_token("-1", *about("ListMemoryHistory", "u1", ""))):
        with pytest.raises(InvalidRequest, match="page_token"):
            list_history_request(pb.ListMemoryHistoryRequest(user_id="u1", page_token=token))


@pytest.mark.parametrize(("count", "fields"), [(3, 3), (150, 2), (400, 0)])
def test_a_revision_is_told_whole_with_less_of_each_change_where_it_is_large(
    count: int, fields: int
) -> None:
    told = watch_response(5, changes(count, 16_000))
    assert told.ByteSize() <= MAX_ANSWER_BYTES
    assert len(told.entries) == count
    (entry, *_) = told.entries
    names = ("before", "after", "decision")
    assert sum(entry.HasField(name) for name in names) == fields  # type: ignore[arg-type]
