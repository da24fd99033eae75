"""What streams: all of a user's memories out, and back."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from memory_service.codec import transfer
from memory_service.codec.requests import user_request
from memory_service.domain.errors import InvalidField, InvalidRequest
from memory_service.handlers.failures import item_error
from memory_service.remember.exporting import Export
from memory_service.remember.importing import Import, ImportAnswer, Item
from memory_service.v1 import memory_pb2 as pb

IMPORT_ANSWER = ImportAnswer(
    empty=b"",
    part=lambda outcomes: transfer.import_part(outcomes, item_error),
    join=transfer.import_join,
)


async def export_memories(
    export: Export, request: pb.ExportMemoriesRequest
) -> AsyncGenerator[pb.ExportMemoriesResponse, None]:
    """Stream the user's memories."""
    user_id = user_request(request)
    async with aclosing(export.each(user_id, transfer.export_answer)) as messages:
        async for message in messages:
            yield pb.ExportMemoriesResponse.FromString(message)


async def import_memories(
    importing: Import, messages: AsyncIterator[pb.ImportMemoriesRequest]
) -> pb.ImportMemoriesResponse:
    """Store what the stream brings. Raises InvalidRequest if it brings nothing."""
    async for first in messages:
        requests = transfer.ImportRequests(first)
        items = _items(requests, first, messages)
        kept = await importing.run(requests.user_id, requests.request_id, items, IMPORT_ANSWER)
        return pb.ImportMemoriesResponse.FromString(kept)
    raise InvalidRequest([InvalidField("user_id", "is required in at least one message")])


async def _items(
    requests: transfer.ImportRequests,
    first: pb.ImportMemoriesRequest,
    later: AsyncIterator[pb.ImportMemoriesRequest],
) -> AsyncIterator[Item]:
    yield Item(*requests.read(first))
    async for message in later:
        yield Item(*requests.read(message))
