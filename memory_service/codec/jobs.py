"""Jobs of the queue: requests, and answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_service.codec.checks import Checks
from memory_service.codec.ingest import outcome_message, read_turn
from memory_service.codec.memories import timestamp
from memory_service.codec.pages import about, fitting, number, place
from memory_service.codec.requests import mutation
from memory_service.codec.words import JOB_STATE_OF, JOB_STATES
from memory_service.domain.ingest import Job, Turn
from memory_service.ports import JobFilter, RequestKey
from memory_service.v1 import memory_pb2 as pb
from rpc.fields import items_of_page
from rpc.page_tokens import page_token


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A page that is asked for; about is what its tokens are bound to."""

    user_id: str
    wanted: JobFilter
    size: int
    before: int
    about: tuple[str, ...]


def ingest_request(request: pb.IngestTurnRequest) -> tuple[Turn, RequestKey]:
    """Read IngestTurn. Raises InvalidRequest."""
    check = Checks()
    _, key = mutation(check, request, "IngestTurn")
    turn = read_turn(check, request)
    check.passed()
    return turn, key


def job_request(request: pb.GetIngestJobRequest) -> tuple[str, str]:
    """Read GetIngestJob: user_id, job_id. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    job_id = check.identifier("job_id", request.job_id)
    check.passed()
    return user_id, job_id


def retry_request(request: pb.RetryIngestJobRequest) -> tuple[str, str, RequestKey]:
    """Read RetryIngestJob: user_id, job_id, key. Raises InvalidRequest."""
    check = Checks()
    user_id, key = mutation(check, request, "RetryIngestJob")
    job_id = check.identifier("job_id", request.job_id)
    check.passed()
    return user_id, job_id, key


def list_jobs_request(request: pb.ListIngestJobsRequest) -> JobPage:
    """Read ListIngestJobs. Raises InvalidRequest."""
    check = Checks()
    user_id = check.identifier("user_id", request.user_id)
    wanted = JobFilter(
        states=check.words("states", request.states, JOB_STATES),
        conversation_id=check.name("conversation_id", request.conversation_id),
        turn_id=check.name("turn_id", request.turn_id),
    )
    size = items_of_page(check.not_negative("page_size", request.page_size))
    of = about("ListIngestJobs", user_id, wanted.states, wanted.conversation_id, wanted.turn_id)
    before = number(check, place(check, request.page_token, of))
    check.passed()
    return JobPage(user_id=user_id, wanted=wanted, size=size, before=before, about=of)


def list_jobs_response(jobs: Sequence[Job], page: JobPage) -> pb.ListIngestJobsResponse:
    """Give a page of what was read: one job more than the page's size if there are more."""
    taken = fitting(job_message(job) for job in jobs[: page.size])
    response = pb.ListIngestJobsResponse(jobs=taken)
    if len(taken) < len(jobs):
        response.next_page_token = page_token(str(jobs[len(taken) - 1].seq), *page.about)
    return response


def job_message(job: Job) -> pb.IngestJob:
    """Give a job as answers show it."""
    return pb.IngestJob(
        job_id=job.job_id,
        conversation_id=job.turn.conversation_id,
        turn_id=job.turn.turn_id,
        state=JOB_STATE_OF[job.state],
        attempt=job.attempt,
        next_attempt_time=timestamp(job.next_attempt_time),
        last_error=job.last_error,
        outcome=None if job.outcome is None else outcome_message(job.outcome),
        create_time=timestamp(job.create_time),
    )


def ingest_answer(job: Job) -> bytes:
    """Keep what IngestTurn answers."""
    return pb.IngestTurnResponse(job_id=job.job_id).SerializeToString(deterministic=True)


def retry_answer(job: Job) -> bytes:
    """Keep what RetryIngestJob answers."""
    answer = pb.RetryIngestJobResponse(job=job_message(job))
    return answer.SerializeToString(deterministic=True)
