"""Every RPC with every field missing, too long, out of range or with control characters."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import Connection, func, select

from memory_service.adapters.sql.schema import (
    memories,
    memory_jobs,
    memory_requests,
    memory_user_states,
)
from memory_service.v1 import memory_pb2 as pb
from rpc.errors import read_failure

LONG = "x" * 129
CONTROL = ("a\nb", "a\0", "a\x7f", "a\x9b")
REQUIRED_ID = ("", LONG, "é" * 65, *CONTROL)
NAME = (LONG, *CONTROL)
FRACTION = (-0.1, 1.5, float("nan"), float("inf"))
UNKNOWN_ENUM = (9, -1)
USER = {"user_id": REQUIRED_ID}
MUTATION = USER | {"request_id": REQUIRED_ID}
NEW_MEMORY: dict[str, tuple[Any, ...]] = {
    "memory.memory_type": (0, *UNKNOWN_ENUM),
    "memory.content": ("", " \n", "\0", "\u200b", "x" * 16_385, "é" * 8_193),
    "memory.title": ("x" * 257,),
    "memory.user_id": ("u2",),
    "memory.conversation_id": NAME,
    "memory.assistant_id": NAME,
    "memory.run_id": NAME,
    "memory.turn_id": NAME,
    "memory.speaker": NAME,
    "memory.confidence": FRACTION,
    "memory.importance": FRACTION,
    "memory.sensitivity_level": (-1, 3),
    "memory.status": (2, 3, 4, *UNKNOWN_ENUM),
    "memory.expire_time.seconds": (253_402_300_800, -62_135_596_801),
    "memory.expire_time.nanos": (-1, 1_000_000_000),
    "memory.occur_time.seconds": (2**62,),
    "memory.event_ids[0]": REQUIRED_ID,
    "memory.metadata": ({"k": "x" * 4_096},),
}
QUERY: dict[str, tuple[Any, ...]] = {
    "query": ("x" * 65_537,),
    "conversation_id": NAME,
    "assistant_id": NAME,
    "run_id": NAME,
    "mode": UNKNOWN_ENUM,
    "cut": UNKNOWN_ENUM,
    "memory_types[0]": (0, *UNKNOWN_ENUM),
    "budgets.constraint": (-1, 201),
    "budgets.preference": (-1, 201),
    "budgets.todo_hint": (-1, 201),
    "budgets.fact": (-1, 201),
    "limit": (-1, 201),
    "token_budget": (-1,),
    "min_relevance": FRACTION,
    "min_revision": (-1,),
}
BAD_TOKEN = ("x", "=", "é", "A" * 40, "A" * 100_000)
SAID = pb.TurnMessage(
    role=pb.MESSAGE_ROLE_USER, content="I like tea.", create_time=Timestamp(seconds=1)
)
TURN: dict[str, tuple[Any, ...]] = {
    "conversation_id": NAME,
    "assistant_id": NAME,
    "run_id": NAME,
    "messages[0].role": (0, *UNKNOWN_ENUM),
    "messages[0].content": ("x" * 32_769, "é" * 16_385),
    "messages[0].create_time.seconds": (253_402_300_800, -62_135_596_801),
    "messages[0].create_time.nanos": (-1, 1_000_000_000),
    "messages[0].timezone": ("Mars/Base", "+25:00", "8", "../etc/passwd", "x" * 1_000),
}
RPCS: dict[str, tuple[Any, dict[str, tuple[Any, ...]]]] = {
    "Retrieve": (pb.RetrieveRequest(user_id="u1"), USER | QUERY),
    "BatchRetrieve": (
        pb.BatchRetrieveRequest(user_id="u1", requests=[pb.RetrieveRequest()]),
        USER,
    ),
    "CreateMemory": (
        pb.CreateMemoryRequest(
            user_id="u1",
            request_id="r",
            memory=pb.Memory(memory_type=pb.MEMORY_TYPE_FACT, content="x"),
        ),
        MUTATION | NEW_MEMORY,
    ),
    "BatchCreateMemories": (
        pb.BatchCreateMemoriesRequest(user_id="u1", request_id="r", memories=[pb.Memory()]),
        MUTATION,
    ),
    "GetMemory": (
        pb.GetMemoryRequest(user_id="u1", memory_id="m"),
        USER | {"memory_id": REQUIRED_ID},
    ),
    "BatchGetMemories": (
        pb.BatchGetMemoriesRequest(user_id="u1", memory_ids=["m"]),
        USER | {"memory_ids[0]": REQUIRED_ID},
    ),
    "ListMemories": (
        pb.ListMemoriesRequest(user_id="u1"),
        USER
        | {
            "memory_types[0]": (0, *UNKNOWN_ENUM),
            "statuses[0]": (0, *UNKNOWN_ENUM),
            "text": ("x" * 16_385,),
            "page_size": (-1,),
            "page_token": BAD_TOKEN,
        },
    ),
    "UpdateMemory": (
        pb.UpdateMemoryRequest(
            user_id="u1",
            request_id="r",
            memory=pb.Memory(memory_id="m", version=1, title="t"),
            update_mask=FieldMask(paths=["title"]),
        ),
        MUTATION
        | {
            "memory.memory_id": REQUIRED_ID,
            "memory.user_id": ("u2",),
            "memory.version": (0, -1),
            "memory.title": ("x" * 257,),
            "update_mask.paths[0]": ("", "memory_id", "user_id", "version", "revision", "nonsense"),
        },
    ),
    "DeleteMemory": (
        pb.DeleteMemoryRequest(user_id="u1", request_id="r", memory_id="m"),
        MUTATION | {"memory_id": REQUIRED_ID},
    ),
    "RestoreMemory": (
        pb.RestoreMemoryRequest(user_id="u1", request_id="r", memory_id="m"),
        MUTATION | {"memory_id": REQUIRED_ID},
    ),
    "GetUserSettings": (pb.GetUserSettingsRequest(user_id="u1"), USER),
    "UpdateUserSettings": (
        pb.UpdateUserSettingsRequest(
            user_id="u1",
            request_id="r",
            settings=pb.UserSettings(
                disabled_types=[pb.MEMORY_TYPE_FACT], retention=Duration(seconds=9)
            ),
            update_mask=FieldMask(paths=["disabled_types", "retention"]),
        ),
        MUTATION
        | {
            "settings.disabled_types[0]": (0, *UNKNOWN_ENUM),
            "settings.retention.seconds": (0, -1, 2**50),
            "update_mask.paths[0]": ("", "user_id", "nonsense"),
        },
    ),
    "EraseUser": (pb.EraseUserRequest(user_id="u1", request_id="r"), MUTATION),
    "ListMemoryHistory": (
        pb.ListMemoryHistoryRequest(user_id="u1"),
        USER | {"memory_id": NAME, "page_size": (-1,), "page_token": BAD_TOKEN},
    ),
    "RevertMemory": (
        pb.RevertMemoryRequest(user_id="u1", request_id="r", memory_id="m", to_version=1),
        MUTATION | {"memory_id": REQUIRED_ID, "to_version": (0, -1)},
    ),
    "DryRunIngest": (pb.DryRunIngestRequest(user_id="u1", messages=[SAID]), USER | TURN),
    "GetStats": (pb.GetStatsRequest(user_id="u1"), USER),
    "IngestTurn": (
        pb.IngestTurnRequest(user_id="u1", request_id="r", messages=[SAID]),
        MUTATION | TURN | {"turn_id": NAME},
    ),
    "GetIngestJob": (
        pb.GetIngestJobRequest(user_id="u1", job_id="j"),
        USER | {"job_id": REQUIRED_ID},
    ),
    "ListIngestJobs": (
        pb.ListIngestJobsRequest(user_id="u1"),
        USER
        | {
            "states[0]": (0, *UNKNOWN_ENUM),
            "conversation_id": NAME,
            "turn_id": NAME,
            "page_size": (-1,),
            "page_token": BAD_TOKEN,
        },
    ),
    "RetryIngestJob": (
        pb.RetryIngestJobRequest(user_id="u1", request_id="r", job_id="j"),
        MUTATION | {"job_id": REQUIRED_ID},
    ),
}


def spoiled(request: Any, path: str, value: Any) -> Any:
    """Give a copy of a request with a bad value at a path such as memory.event_ids[0]."""
    copy = type(request)()
    copy.CopyFrom(request)
    *steps, last = path.split(".")
    target = copy
    for step in steps:
        target = getattr(target, step.removesuffix("[0]"))
        target = target[0] if step.endswith("[0]") else target
    if last.endswith("[0]"):
        values = getattr(target, last[:-3])
        del values[:]
        values.append(value)
    elif isinstance(value, dict):
        getattr(target, last).update(value)
    else:
        setattr(target, last, value)
    return copy


def _cases() -> Iterator[Any]:
    for rpc, (request, fields) in RPCS.items():
        for path, values in fields.items():
            yield pytest.param(rpc, request, path, values, id=f"{rpc}-{path}")


def _named(path: str) -> str:
    """Give the field that is named: a time as a whole."""
    head, _, last = path.rpartition(".")
    return head if last in {"seconds", "nanos"} else path


@pytest.fixture
async def memory_server(serve_memory: Any) -> AsyncIterator[Any]:
    """Serve from SQLite without Milvus: nothing here gets as far as a database."""
    async with serve_memory(milvus_uri="off") as server:
        yield server


async def test_bad_fields_are_named_and_nothing_is_stored(memory_server: Any) -> None:
    wrong: list[str] = []
    tried = 0
    for case in _cases():
        rpc, request, path, values = case.values
        for value in values:
            tried += 1
            try:
                await getattr(memory_server.stub, rpc)(spoiled(request, path, value))
            except grpc.aio.AioRpcError as error:
                failure = read_failure(error)
                named = {violation.field for violation in failure.violations}
                if failure.code is grpc.StatusCode.INVALID_ARGUMENT and _named(path) in named:
                    continue
                wrong.append(f"{rpc} {path} {value!r:.40}: {failure} {named}")
            else:
                wrong.append(f"{rpc} {path} {value!r:.40}: taken")
    assert not wrong
    assert tried > 250
    assert await memory_server.app.store.database.read(_rows) == 0


def _rows(connection: Connection) -> int:
    tables = (memories, memory_requests, memory_user_states, memory_jobs)
    counts = [connection.scalar(select(func.count()).select_from(table)) for table in tables]
    return sum(count or 0 for count in counts)


@pytest.mark.parametrize(
    ("rpc", "field", "number", "filling"),
    [
        ("BatchRetrieve", "requests", 21, pb.RetrieveRequest()),
        ("BatchRetrieve", "requests", 0, pb.RetrieveRequest()),
        ("BatchCreateMemories", "memories", 501, pb.Memory()),
        ("BatchCreateMemories", "memories", 0, pb.Memory()),
        ("BatchGetMemories", "memory_ids", 101, "m"),
        ("BatchGetMemories", "memory_ids", 0, "m"),
        ("Retrieve", "memory_types", 5, pb.MEMORY_TYPE_FACT),
        ("ListMemories", "memory_types", 5, pb.MEMORY_TYPE_FACT),
        ("IngestTurn", "messages", 65, SAID),
        ("IngestTurn", "messages", 0, SAID),
        ("ListIngestJobs", "states", 5, pb.JOB_STATE_DONE),
    ],
)
async def test_counts_are_bounded(
    memory_server: Any, rpc: str, field: str, number: int, filling: Any
) -> None:
    request = type(RPCS[rpc][0])()
    request.CopyFrom(RPCS[rpc][0])
    values = getattr(request, field)
    del values[:]
    values.extend([filling] * number)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await getattr(memory_server.stub, rpc)(request)
    failure = read_failure(caught.value)
    assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
    assert [violation.field for violation in failure.violations] == [field]


async def test_bytes_that_are_no_message_are_malformed(memory_server: Any) -> None:
    for rpc in RPCS:
        call = memory_server.channel.unary_unary(f"/memory_service.v1.MemoryService/{rpc}")
        for raw in (b"\xff\xff\xff", b"\x0a\x05ab", b"\x0a\x02\xff\xfe"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(raw)
            failure = read_failure(caught.value)
            assert failure.code is grpc.StatusCode.INVALID_ARGUMENT
            assert failure.reason == "MALFORMED_MESSAGE"


async def test_a_message_above_4_mib_is_refused_and_the_server_lives_on(memory_server: Any) -> None:
    request = pb.RetrieveRequest(user_id="u1", query="x" * (4 * 1024 * 1024 + 1))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await memory_server.stub.Retrieve(request)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    await memory_server.stub.GetStats(pb.GetStatsRequest(user_id="u1"))


def test_every_rpc_is_walked() -> None:
    methods = pb.DESCRIPTOR.services_by_name["MemoryService"].methods
    streams = {"WatchMemories", "ExportMemories", "ImportMemories"}
    assert {method.name for method in methods} == {*RPCS, *streams}
