"""Turns and jobs, between the contract and the domain."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from memory_service.codec.ingest import dry_run_request, outcome_message
from memory_service.codec.jobs import (
    ingest_answer,
    ingest_request,
    job_message,
    job_request,
    list_jobs_request,
    list_jobs_response,
    retry_answer,
    retry_request,
)
from memory_service.codec.memories import MAX_ANSWER_BYTES, memory_message
from memory_service.domain.errors import InvalidRequest
from memory_service.domain.ingest import (
    Action,
    Candidate,
    Decision,
    IngestOutcome,
    Job,
    JobState,
    Reason,
    Relation,
)
from memory_service.domain.model import Role
from memory_service.v1 import memory_pb2 as pb
from rpc.page_tokens import page_token
from tests.builders.memories import NOW, memory
from tests.builders.turns import turn

OUTCOME = IngestOutcome(
    intent="preference",
    decisions=(
        Decision(
            fact=memory("m1"),
            action=Action.ADD,
            reason=Reason.CONFLICT,
            memory_id="m1",
            superseded_ids=("m0",),
            candidates=(Candidate(memory_id="m0", score=0.5, relation=Relation.CONFLICT),),
            model="small",
            prompt_version="3",
        ),
    ),
    warnings=("truncated",),
)


def job(seq: int = 1, **fields: Any) -> Job:
    wanted: dict[str, Any] = {"turn": turn(), "create_time": NOW, "request_id": "r"} | fields
    return Job(job_id=f"j{seq}", seq=seq, **wanted)


def said(content: str = "I like tea.", **fields: Any) -> pb.TurnMessage:
    wanted: dict[str, Any] = {
        "role": pb.MESSAGE_ROLE_USER,
        "create_time": Timestamp(seconds=60),
    } | fields
    return pb.TurnMessage(content=content, **wanted)


def asked(*messages: pb.TurnMessage, **fields: Any) -> pb.IngestTurnRequest:
    wanted: dict[str, Any] = {
        "user_id": "u1",
        "request_id": "r1",
        "conversation_id": "c1",
        "turn_id": "t1",
    }
    return pb.IngestTurnRequest(messages=messages or [said()], **wanted | fields)


def refused(request: pb.IngestTurnRequest) -> list[str]:
    with pytest.raises(InvalidRequest) as caught:
        ingest_request(request)
    return [violation.field for violation in caught.value.violations]


def test_a_turn_is_read_as_it_was_said() -> None:
    request = asked(
        said("a\0b", timezone="Asia/Shanghai"),
        said("Hello.", role=pb.MESSAGE_ROLE_ASSISTANT, timezone="-03:30"),
        said("Be kind.", role=pb.MESSAGE_ROLE_SYSTEM),
        said("", role=pb.MESSAGE_ROLE_TOOL),
        assistant_id="a",
        run_id="n",
    )
    got, key = ingest_request(request)
    assert (got.user_id, got.conversation_id, got.turn_id) == ("u1", "c1", "t1")
    assert (got.assistant_id, got.run_id) == ("a", "n")
    assert (key.request_id, key.rpc) == ("r1", "IngestTurn")
    assert [(m.role, m.content, m.timezone) for m in got.messages] == [
        (Role.USER, "ab", "Asia/Shanghai"),
        (Role.ASSISTANT, "Hello.", "-03:30"),
        (Role.SYSTEM, "Be kind.", ""),
        (Role.TOOL, "", ""),
    ]
    assert got.messages[0].create_time.timestamp() == 60


def test_a_turn_that_is_only_decided_about_is_read_by_the_same_rules() -> None:
    dry = pb.DryRunIngestRequest(user_id="u1", conversation_id="c1", messages=[said()])
    got = dry_run_request(dry)
    assert got == replace(ingest_request(asked())[0], turn_id="")
    with pytest.raises(InvalidRequest, match="messages"):
        dry_run_request(pb.DryRunIngestRequest(user_id="u1"))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (asked(*[said("")] * 65), "messages"),
        (asked(said("x" * 32_769)), "messages[0].content"),
        (asked(said(), said("é" * 16_385)), "messages[1].content"),
        (asked(*[said("x" * 32_768)] * 8, said("x")), "messages"),
        (asked(said(role=0)), "messages[0].role"),
        (asked(said(role=9)), "messages[0].role"),
        (asked(said(create_time=None)), "messages[0].create_time"),
        (asked(said(create_time=Timestamp(seconds=2**60))), "messages[0].create_time"),
        (asked(said(timezone="Mars/Base")), "messages[0].timezone"),
        (asked(said(timezone="+25:00")), "messages[0].timezone"),
    ],
)
def test_what_breaks_a_rule_is_named(request_: pb.IngestTurnRequest, field: str) -> None:
    assert refused(request_) == [field]


def test_the_largest_turn_is_taken() -> None:
    got, _ = ingest_request(asked(*[said("x" * 4096)] * 64))
    assert len(got.messages) == 64
    ingest_request(asked(*[said("é" * 16_384)] * 8))


def test_a_turn_without_messages_is_none() -> None:
    request = asked()
    del request.messages[:]
    assert refused(request) == ["messages"]


def test_an_outcome_is_given_whole() -> None:
    assert outcome_message(OUTCOME) == pb.IngestOutcome(
        message_intent="preference",
        decisions=[
            pb.Decision(
                fact=memory_message(memory("m1")),
                action=pb.DECISION_ACTION_ADD,
                memory_id="m1",
                superseded_ids=["m0"],
                reason="conflict",
                candidates=[pb.DecisionCandidate(memory_id="m0", score=0.5, relation="conflict")],
                model="small",
                prompt_version="3",
            )
        ],
        warnings=["truncated"],
    )


def test_a_job_is_given_as_it_is() -> None:
    later = NOW + timedelta(seconds=5)
    waiting = job_message(
        job(state=JobState.PENDING, attempt=2, next_attempt_time=later, last_error="TIMEOUT")
    )
    assert (waiting.job_id, waiting.conversation_id, waiting.turn_id) == ("j1", "c1", "t1")
    assert (waiting.state, waiting.attempt) == (pb.JOB_STATE_PENDING, 2)
    assert waiting.next_attempt_time.ToSeconds() == int(later.timestamp())
    assert waiting.create_time.ToSeconds() == int(NOW.timestamp())
    assert (waiting.last_error, waiting.HasField("outcome")) == ("TIMEOUT", False)
    done = job_message(job(state=JobState.DONE, outcome=OUTCOME))
    assert (done.state, done.outcome) == (pb.JOB_STATE_DONE, outcome_message(OUTCOME))
    assert not done.HasField("next_attempt_time")


def test_answers_are_kept_as_messages() -> None:
    assert pb.IngestTurnResponse.FromString(ingest_answer(job())).job_id == "j1"
    assert pb.RetryIngestJobResponse.FromString(retry_answer(job())).job == job_message(job())


def test_a_job_is_named_by_user_and_id() -> None:
    assert job_request(pb.GetIngestJobRequest(user_id="u1", job_id="j1")) == ("u1", "j1")
    retry = pb.RetryIngestJobRequest(user_id="u1", request_id="r1", job_id="j1")
    user_id, job_id, key = retry_request(retry)
    assert (user_id, job_id, key.rpc) == ("u1", "j1", "RetryIngestJob")
    with pytest.raises(InvalidRequest, match="job_id"):
        job_request(pb.GetIngestJobRequest(user_id="u1"))
    with pytest.raises(InvalidRequest, match="request_id"):
        retry_request(pb.RetryIngestJobRequest(user_id="u1", job_id="j1"))


def listed(**fields: Any) -> pb.ListIngestJobsRequest:
    return pb.ListIngestJobsRequest(**{"user_id": "u1", **fields})


def test_a_page_of_jobs_goes_on_where_it_ended_and_in_the_same_list_only() -> None:
    wanted = {"states": [pb.JOB_STATE_DONE, pb.JOB_STATE_PARKED], "conversation_id": "c1"}
    page = list_jobs_request(listed(page_size=2, **wanted))
    assert (page.size, page.before, page.wanted.turn_id) == (2, 0, "")
    assert page.wanted.states == {JobState.DONE, JobState.PARKED}
    answer = list_jobs_response([job(9), job(8), job(7)], page)
    assert [each.job_id for each in answer.jobs] == ["j9", "j8"]
    token = answer.next_page_token
    assert list_jobs_request(listed(page_token=token, **wanted)).before == 8
    assert list_jobs_response([job(7)], page).next_page_token == ""
    forged = page_token("-1", *page.about), page_token("9" * 19, *page.about)
    for other in (
        listed(page_token=token),
        listed(page_token=token, **wanted, turn_id="t1"),
        listed(page_token=token, **wanted | {"user_id": "u2"}),
        *(listed(page_token=each, **wanted) for each in forged),
    ):
        with pytest.raises(InvalidRequest, match="page_token"):
            list_jobs_request(other)


def test_a_page_of_jobs_ends_before_it_is_too_large() -> None:
    large = replace(
        OUTCOME,
        decisions=tuple(
            replace(OUTCOME.decisions[0], fact=memory("m", "x" * 16_000)) for _ in range(60)
        ),
    )
    jobs = [job(seq, state=JobState.DONE, outcome=large) for seq in range(9, 0, -1)]
    page = list_jobs_request(listed())
    answer = list_jobs_response(jobs, page)
    assert answer.ByteSize() <= MAX_ANSWER_BYTES
    assert [each.job_id for each in answer.jobs] == ["j9", "j8", "j7"]
    assert list_jobs_request(listed(page_token=answer.next_page_token)).before == 7
