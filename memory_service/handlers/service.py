"""MemoryService."""
# ruff: noqa: N802, ARG002 — names and parameters are those of gRPC

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from memory_service.codec import erase, pages, requests, retrieve
from memory_service.codec.memories import (
    MAX_ANSWER_BYTES,
    MAX_MEMORY_BYTES,
    memory_message,
    memory_size,
)
from memory_service.codec.settings import settings_message
from memory_service.codec.stats import stats_response
from memory_service.consolidate.jobs import Jobs
from memory_service.consolidate.learner import Learner
from memory_service.domain.errors import AnswerTooLarge, DomainError, InvalidRequest
from memory_service.domain.recall import Answer, Query
from memory_service.domain.write import Outcome, Stored
from memory_service.handlers.failures import MAX_ITEM_ERROR_BYTES, item_error
from memory_service.handlers.history import HistoryHandlers
from memory_service.handlers.jobs import JobHandlers
from memory_service.handlers.transfer import export_memories, import_memories
from memory_service.remember.batch import BatchAnswer, RememberMany
from memory_service.remember.browse import Browse
from memory_service.remember.by_hand import Remember
from memory_service.remember.exporting import Export
from memory_service.remember.history import History
from memory_service.remember.importing import Import
from memory_service.remember.watch import Watch
from memory_service.upkeep.erase import Erase
from memory_service.v1 import memory_pb2 as pb
from rpc.deadline import remaining

Context = grpc.aio.ServicerContext[Any, Any]


class Retrieves(Protocol):
    """Answers one query within deadline seconds."""

    async def retrieve(self, query: Query, *, deadline: float) -> Answer:
        """Find what to recall."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """What the RPCs ask. retrieve_timeout: most seconds that a Retrieve takes."""

    retriever: Retrieves
    remember: Remember
    remember_many: RememberMany
    browse: Browse
    erase: Erase
    history: History
    watch: Watch
    jobs: Jobs
    learner: Learner
    export: Export
    importing: Import
    retrieve_defaults: retrieve.RetrieveDefaults
    retrieve_timeout: float


class MemoryHandlers(JobHandlers, HistoryHandlers):
    """One RPC = decode, use case, encode. Domain errors pass through, see failures."""

    def __init__(self, use: UseCases) -> None:
        JobHandlers.__init__(self, use.jobs, use.learner)
        HistoryHandlers.__init__(self, use.history, use.watch)
        self._use = use

    async def Retrieve(self, request: pb.RetrieveRequest, context: Context) -> pb.RetrieveResponse:
        """Find what to recall."""
        query = retrieve.retrieve_request(request, self._use.retrieve_defaults)
        deadline = remaining(context, self._use.retrieve_timeout)
        answer = await self._use.retriever.retrieve(query, deadline=deadline)
        return retrieve.retrieve_response(answer, explain=query.explain)

    async def BatchRetrieve(
        self, request: pb.BatchRetrieveRequest, context: Context
    ) -> pb.BatchRetrieveResponse:
        """Answer each query, or say why not."""
        queries = retrieve.batch_retrieve_request(request, self._use.retrieve_defaults)
        deadline = remaining(context, self._use.retrieve_timeout)
        answers = await asyncio.gather(*(self._answer(query, deadline) for query in queries))
        return _batch_retrieve_response(answers)

    async def _answer(
        self, query: Query | InvalidRequest, deadline: float
    ) -> pb.RetrieveResponse | DomainError:
        if isinstance(query, InvalidRequest):
            return query
        try:
            answer = await self._use.retriever.retrieve(query, deadline=deadline)
        except DomainError as error:
            return error
        return retrieve.retrieve_response(answer, explain=query.explain)

    async def CreateMemory(
        self, request: pb.CreateMemoryRequest, context: Context
    ) -> pb.CreateMemoryResponse:
        """Store a memory, or refresh the equal one."""
        new, key = requests.create_request(request)
        kept = await self._use.remember.create(new, key, requests.create_answer)
        return pb.CreateMemoryResponse.FromString(kept)

    async def BatchCreateMemories(
        self, request: pb.BatchCreateMemoriesRequest, context: Context
    ) -> pb.BatchCreateMemoriesResponse:
        """Store each memory, or say why not."""
        user_id, items, key = requests.batch_create_request(request)
        kept = await self._use.remember_many.create(user_id, items, key, _BATCH)
        return pb.BatchCreateMemoriesResponse.FromString(b"".join(kept))

    async def GetMemory(
        self, request: pb.GetMemoryRequest, context: Context
    ) -> pb.GetMemoryResponse:
        """Give a memory in any status."""
        user_id, memory_id = requests.get_request(request)
        memory = await self._use.browse.get(user_id, memory_id)
        return pb.GetMemoryResponse(memory=memory_message(memory))

    async def BatchGetMemories(
        self, request: pb.BatchGetMemoriesRequest, context: Context
    ) -> pb.BatchGetMemoriesResponse:
        """Give those of the memories that there are."""
        user_id, memory_ids = requests.batch_get_request(request)
        memories = await self._use.browse.get_many(user_id, memory_ids)
        if sum(memory_size(memory) for memory in memories) > MAX_ANSWER_BYTES:
            message = "ask for fewer memories at once"
            raise AnswerTooLarge(message)
        return pb.BatchGetMemoriesResponse(memories=[memory_message(m) for m in memories])

    async def ListMemories(
        self, request: pb.ListMemoriesRequest, context: Context
    ) -> pb.ListMemoriesResponse:
        """Give a page, newest first."""
        page = pages.list_request(request)
        memories = await self._use.browse.page(
            page.user_id, page.wanted, before=page.before, size=page.size
        )
        return pages.list_response(memories, page)

    async def UpdateMemory(
        self, request: pb.UpdateMemoryRequest, context: Context
    ) -> pb.UpdateMemoryResponse:
        """Change the fields of the mask."""
        user_id, patch, key = requests.update_request(request)
        kept = await self._use.remember.update(user_id, patch, key, requests.update_answer)
        return pb.UpdateMemoryResponse.FromString(kept)

    async def DeleteMemory(
        self, request: pb.DeleteMemoryRequest, context: Context
    ) -> pb.DeleteMemoryResponse:
        """Mark a memory deleted."""
        user_id, memory_id, key = requests.memory_request(request, "DeleteMemory")
        kept = await self._use.remember.delete(user_id, memory_id, key, requests.delete_answer)
        return pb.DeleteMemoryResponse.FromString(kept)

    async def RestoreMemory(
        self, request: pb.RestoreMemoryRequest, context: Context
    ) -> pb.RestoreMemoryResponse:
        """Make a memory active again."""
        user_id, memory_id, key = requests.memory_request(request, "RestoreMemory")
        kept = await self._use.remember.restore(user_id, memory_id, key, requests.restore_answer)
        return pb.RestoreMemoryResponse.FromString(kept)

    async def GetUserSettings(
        self, request: pb.GetUserSettingsRequest, context: Context
    ) -> pb.GetUserSettingsResponse:
        """Give the settings in force."""
        settings = await self._use.browse.settings(requests.user_request(request))
        return pb.GetUserSettingsResponse(settings=settings_message(settings))

    async def UpdateUserSettings(
        self, request: pb.UpdateUserSettingsRequest, context: Context
    ) -> pb.UpdateUserSettingsResponse:
        """Change the settings of the mask."""
        user_id, values, key = requests.settings_request(request)
        kept = await self._use.remember.set_settings(user_id, values, key, requests.settings_answer)
        return pb.UpdateUserSettingsResponse.FromString(kept)

    async def EraseUser(
        self, request: pb.EraseUserRequest, context: Context
    ) -> pb.EraseUserResponse:
        """Remove all that is kept about the user."""
        user_id, key = erase.erase_request(request)
        kept = await self._use.erase.erase(user_id, key, erase.erase_answer)
        return pb.EraseUserResponse.FromString(kept)

    async def ExportMemories(
        self, request: pb.ExportMemoriesRequest, context: Context
    ) -> AsyncIterator[pb.ExportMemoriesResponse]:
        """Stream all of the user's memories."""
        async with aclosing(export_memories(self._use.export, request)) as messages:
            async for message in messages:
                yield message

    async def ImportMemories(
        self, request_iterator: AsyncIterator[pb.ImportMemoriesRequest], context: Context
    ) -> pb.ImportMemoriesResponse:
        """Store what an export gave."""
        return await import_memories(self._use.importing, request_iterator)

    async def GetStats(self, request: pb.GetStatsRequest, context: Context) -> pb.GetStatsResponse:
        """Count what is stored."""
        return stats_response(await self._use.browse.stats(requests.user_request(request)))


def _batch_retrieve_response(
    answers: Sequence[pb.RetrieveResponse | DomainError],
) -> pb.BatchRetrieveResponse:
    """Give the answers in order; one that would make the whole too large becomes an error."""
    response = pb.BatchRetrieveResponse()
    room = MAX_ANSWER_BYTES - MAX_ITEM_ERROR_BYTES * len(answers)
    for place, answer in enumerate(answers):
        if isinstance(answer, DomainError):
            response.results.add(error=item_error(place, answer))
        elif answer.ByteSize() > room:
            too_large = AnswerTooLarge("ask this query in another request")
            response.results.add(error=item_error(place, too_large))
        else:
            room -= answer.ByteSize()
            response.results.add(response=answer)
    return response


def _outcome_size(outcome: Outcome) -> int:
    return memory_size(outcome.memory) if isinstance(outcome, Stored) else MAX_ITEM_ERROR_BYTES


_BATCH = BatchAnswer(
    encode=lambda outcomes: requests.batch_create_answer(outcomes, item_error),
    size=_outcome_size,
    largest=MAX_MEMORY_BYTES,
    most=MAX_ANSWER_BYTES,
)
