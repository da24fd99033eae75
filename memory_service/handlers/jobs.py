"""RPCs of learning from turns."""
# ruff: noqa: N802, ARG002 — names and parameters are those of gRPC

from typing import Any

import grpc

from memory_service.codec import ingest, jobs
from memory_service.consolidate.jobs import Jobs
from memory_service.consolidate.learner import Learner
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class JobHandlers(memory_pb2_grpc.MemoryServiceServicer):
    """One RPC = decode, use case, encode. Domain errors pass through, see failures."""

    def __init__(self, queued: Jobs, learner: Learner) -> None:
        self._jobs = queued
        self._learner = learner

    async def IngestTurn(
        self, request: pb.IngestTurnRequest, context: Context
    ) -> pb.IngestTurnResponse:
        """Store a job that learns from a turn."""
        turn, key = jobs.ingest_request(request)
        kept = await self._jobs.ingest(turn, key, jobs.ingest_answer)
        return pb.IngestTurnResponse.FromString(kept)

    async def DryRunIngest(
        self, request: pb.DryRunIngestRequest, context: Context
    ) -> pb.DryRunIngestResponse:
        """Decide about a turn, and store nothing."""
        outcome = await self._learner.dry_run(ingest.dry_run_request(request))
        return pb.DryRunIngestResponse(outcome=ingest.outcome_message(outcome))

    async def GetIngestJob(
        self, request: pb.GetIngestJobRequest, context: Context
    ) -> pb.GetIngestJobResponse:
        """Give a job and what came of it."""
        user_id, job_id = jobs.job_request(request)
        job = await self._jobs.get(user_id, job_id)
        return pb.GetIngestJobResponse(job=jobs.job_message(job))

    async def ListIngestJobs(
        self, request: pb.ListIngestJobsRequest, context: Context
    ) -> pb.ListIngestJobsResponse:
        """Give a page, newest first."""
        page = jobs.list_jobs_request(request)
        found = await self._jobs.page(page.user_id, page.wanted, before=page.before, size=page.size)
        return jobs.list_jobs_response(found, page)

    async def RetryIngestJob(
        self, request: pb.RetryIngestJobRequest, context: Context
    ) -> pb.RetryIngestJobResponse:
        """Queue a parked job again."""
        user_id, job_id, key = jobs.retry_request(request)
        kept = await self._jobs.retry(user_id, job_id, key, jobs.retry_answer)
        return pb.RetryIngestJobResponse.FromString(kept)
