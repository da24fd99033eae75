"""The commands export and import: a user's memories as lines of JSON."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from google.protobuf.json_format import MessageToJson, Parse, ParseError

from memory_service.app.parts import make_embedder
from memory_service.app.upkeep import open_upkeep
from memory_service.codec.memories import memory_message
from memory_service.codec.requests import user_request
from memory_service.codec.transfer import ImportRequests
from memory_service.domain.errors import InvalidField, InvalidRequest
from memory_service.domain.model import Memory
from memory_service.handlers.transfer import IMPORT_ANSWER
from memory_service.remember.embedding import Embedding
from memory_service.remember.exporting import Export
from memory_service.remember.importing import Import, Item
from memory_service.settings import Settings
from memory_service.v1 import memory_pb2 as pb
from rpc.ids import new_id, utc_now
from rpc.lines import DONE, FAILED, complain, tell

PROGRAM = "memory-service"
_SAID_EVERY = 1000
_EMBED_TIMEOUT = 60.0
"""Seconds: nobody waits for a single memory here."""


async def export(settings: Settings, options: argparse.Namespace) -> int:
    """Write a user's memories to stdout, one in a line, oldest first."""
    user_id = user_request(pb.ExportMemoriesRequest(user_id=options.user))
    done = 0
    async with open_upkeep(settings) as (store, _):
        async for line in Export(store.snapshot).each(user_id, _line):
            sys.stdout.buffer.write(line)
            done += 1
            if not done % _SAID_EVERY:
                sys.stderr.write(f"{PROGRAM}: {done} exported\n")
    sys.stdout.buffer.flush()
    sys.stderr.write(f"{PROGRAM}: {done} exported\n")
    return DONE


async def import_lines(settings: Settings, options: argparse.Namespace) -> int:
    """Store memories from stdin for a user; 1 if any was refused.

    Those of another user are copied: the user_id in a line does not count.
    """
    header = pb.ImportMemoriesRequest(
        user_id=options.user, request_id=options.request_id or new_id()
    )
    requests = ImportRequests(header)
    async with AsyncExitStack() as closing:
        store, _ = await closing.enter_async_context(open_upkeep(settings))
        embedder = make_embedder(settings)
        closing.push_async_callback(embedder.close)
        importing = Import(
            store.writer,
            Embedding(embedder, timeout=_EMBED_TIMEOUT),
            clock=utc_now,
            new_id=new_id,
        )
        items = _items(requests, header)
        kept = await importing.run(requests.user_id, requests.request_id, items, IMPORT_ANSWER)
    answer = pb.ImportMemoriesResponse.FromString(kept)
    for refused in answer.errors:
        complain(PROGRAM, f"line {refused.index + 1}: {refused.message}")
    counts = {"created": answer.created, "refreshed": answer.refreshed, "failed": answer.failed}
    words = ", ".join(f"{number} {what}" for what, number in counts.items())
    tell(json.dumps(counts) if options.json else words)
    return FAILED if answer.failed else DONE


def _line(memory: Memory) -> bytes:
    message = memory_message(memory)
    text = MessageToJson(message, indent=None, preserving_proto_field_name=True, ensure_ascii=False)
    return f"{text}\n".encode()


async def _items(requests: ImportRequests, header: pb.ImportMemoriesRequest) -> AsyncIterator[Item]:
    place = 0
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        message = pb.ImportMemoriesRequest()
        message.CopyFrom(header)
        try:
            Parse(line, message.memory, ignore_unknown_fields=True)
        except (ParseError, ValueError):
            wrong = InvalidField("memory", "the line is no memory as JSON")
            yield Item(InvalidRequest([wrong]), line)
        else:
            message.memory.ClearField("user_id")
            yield Item(*requests.read(message))
        place += 1
        if not place % _SAID_EVERY:
            sys.stderr.write(f"{PROGRAM}: {place} lines read\n")
