"""RPCs over gRPC, with scripted turns and the store in memory."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import grpc
import pytest
import pytest_asyncio

from agent_service.codec.timelines import timeline_bytes
from agent_service.conversations import Conversations
from agent_service.domain import errors
from agent_service.domain.model import ChatCommand, Delta, Done, Failed, Started, TurnEvent
from agent_service.handlers.failures import DOMAIN, failed_turn, failure_of
from agent_service.handlers.service import AgentHandlers
from agent_service.ports import TurnOpened
from agent_service.v1 import agent_pb2 as pb
from agent_service.v1 import agent_pb2_grpc as pb_grpc
from rpc.errors import Failure, read_failure
from rpc.running import ServerSettings, Service, start
from tests.builders.agent_turns import NOON, closing, events, new_turn, report
from tests.fakes.agent_store import FakeAgentStore

Stub: TypeAlias = "pb_grpc.AgentServiceAsyncStub"

STARTED = TurnEvent(1, Started("c1", "t1", "r1", conversation_created=True))
ANSWER = [STARTED, *events(Delta("Hi"), Done("stop"))]


class ScriptedTurns:
    """Gives events, then raises; remembers what it was asked and whether it was closed."""

    def __init__(self) -> None:
        self.events: Sequence[TurnEvent] = ANSWER
        self.error: Exception | None = None
        self.waits = False
        self.commands: list[ChatCommand] = []
        self.places: list[int] = []
        self.closed = asyncio.Event()

    def run(self, command: ChatCommand) -> AsyncIterator[TurnEvent]:
        self.commands.append(command)
        return self._play()

    def resume(
        self, user_id: str, conversation_id: str, turn_id: str, after_seq: int
    ) -> AsyncIterator[TurnEvent]:
        del user_id, conversation_id, turn_id
        self.places.append(after_seq)
        # A plain iterator, as the port allows: nothing to close.
        return _Plain(iter(self.events[after_seq:]), self.error)

    async def cancel(self, user_id: str, conversation_id: str, turn_id: str) -> bool:
        if self.error is not None:
            raise self.error
        return (user_id, conversation_id, turn_id) == ("ann", "c1", "t1")

    async def _play(self) -> AsyncIterator[TurnEvent]:
        try:
            for event in self.events:
                yield event
            if self.waits:
                await asyncio.Event().wait()
            if self.error is not None:
                raise self.error
        finally:
            self.closed.set()


class _Plain:
    def __init__(self, given: Iterator[TurnEvent], error: Exception | None) -> None:
        self.given = given
        self.error = error

    def __aiter__(self) -> "_Plain":
        return self

    async def __anext__(self) -> TurnEvent:
        for event in self.given:
            return event
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration


@pytest.fixture
def turns() -> ScriptedTurns:
    return ScriptedTurns()


@pytest.fixture
def store() -> FakeAgentStore:
    numbers = itertools.count(1)
    return FakeAgentStore(lambda: f"id-{next(numbers)}")


@pytest_asyncio.fixture
async def stub(turns: ScriptedTurns, store: FakeAgentStore) -> AsyncIterator[Stub]:
    async def ready() -> bool:
        return True

    service = Service(
        name="agent_service.v1.AgentService",
        add=pb_grpc.add_AgentServiceServicer_to_server,
        servicer=AgentHandlers(turns, Conversations(store, timeline_bytes)),
        failure_of=failure_of,
        domain=DOMAIN,
    )
    server = await start(ServerSettings(listen="127.0.0.1:0"), service, ready=ready)
    async with grpc.aio.insecure_channel(server.address) as channel:
        yield pb_grpc.AgentServiceStub(channel)
    await server.stop(0)


def chat(message: str = "Hello", **fields: object) -> pb.ChatRequest:
    return pb.ChatRequest(
        user_id="ann",
        client_message_id="m1",
        message=message,
        **fields,  # type: ignore[arg-type]
    )


async def streamed(call: Any) -> list[pb.ChatEvent]:
    return [response.event async for response in call]


async def failure(call: Any) -> Failure:
    answer = streamed(call) if hasattr(call, "__aiter__") else call
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer
    return read_failure(caught.value)


async def say(store: FakeAgentStore, *texts: str) -> None:
    for text in texts:
        opened = await store.open(new_turn(f"t-{text}", text=text))
        assert isinstance(opened, TurnOpened)
        await store.close(opened.lease, closing(answer="", report=report()))


# ---------------------------------------------------------------- turns


async def test_a_turn_streams_its_events(stub: Stub, turns: ScriptedTurns) -> None:
    got = await streamed(stub.Chat(chat("你好"), metadata=(("x-request-id", "r-7"),)))

    assert [(event.seq, event.WhichOneof("event")) for event in got] == [
        (1, "started"),
        (2, "delta"),
        (3, "done"),
    ]
    assert [(asked.message, asked.request_id) for asked in turns.commands] == [("你好", "r-7")]


async def test_what_fails_before_started_fails_the_rpc(stub: Stub, turns: ScriptedTurns) -> None:
    turns.events, turns.error = [], errors.TurnRunning("t1")

    told = await failure(stub.Chat(chat()))

    assert (told.code, told.reason) == (grpc.StatusCode.ABORTED, "TURN_RUNNING")
    assert told.retry_after == 1.0


async def test_what_fails_later_is_the_last_event_and_the_rpc_ends_well(
    stub: Stub, turns: ScriptedTurns
) -> None:
    turns.events, turns.error = ANSWER[:2], errors.StoreUnavailable("10.0.0.7 is down")
    call = stub.Chat(chat())

    got = await streamed(call)

    assert [event.seq for event in got] == [1, 2, 3]
    assert got[-1].error.reason == "STORE_UNAVAILABLE"
    assert "10.0.0.7" not in got[-1].error.message
    assert await call.code() is grpc.StatusCode.OK


async def test_a_fault_of_ours_in_the_middle_is_internal(stub: Stub, turns: ScriptedTurns) -> None:
    turns.events, turns.error = ANSWER[:1], errors.DomainError("a secret")

    told = await failure(stub.Chat(chat()))

    assert told.code is grpc.StatusCode.INTERNAL
    assert "secret" not in told.message


async def test_a_client_that_leaves_closes_the_turn(stub: Stub, turns: ScriptedTurns) -> None:
    turns.events, turns.waits = ANSWER[:2], True
    call = stub.Chat(chat())
    await call.read()
    call.cancel()

    await asyncio.wait_for(turns.closed.wait(), 5)


async def test_a_bad_request_names_its_field(stub: Stub, turns: ScriptedTurns) -> None:
    told = await failure(stub.Chat(chat("\0")))

    assert (told.code, told.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert [violation.field for violation in told.violations] == ["message"]
    assert turns.commands == []


@pytest.mark.parametrize(
    "request_",
    [chat(always_execute=True), chat("", resume=pb.ChatResume(interaction_id="i", action=1))],  # type: ignore[arg-type]
)
async def test_what_comes_later_is_said_to(
    stub: Stub, turns: ScriptedTurns, request_: pb.ChatRequest
) -> None:
    told = await failure(stub.Chat(request_))

    assert (told.code, told.reason) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_IMPLEMENTED")
    assert turns.commands == []


async def test_rpcs_that_come_later_are_said_to(stub: Stub) -> None:
    for call in (
        stub.UpdateConversation(pb.UpdateConversationRequest()),
        stub.DeleteConversation(pb.DeleteConversationRequest()),
        stub.GetSchedulePreview(pb.GetSchedulePreviewRequest()),
        stub.GetScheduleState(pb.GetScheduleStateRequest()),
        stub.SaveScheduleState(pb.SaveScheduleStateRequest()),
    ):
        told = await failure(call)
        assert (told.code, told.reason) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_IMPLEMENTED")


async def test_a_turn_is_resumed_after_the_last_event_seen(
    stub: Stub, turns: ScriptedTurns
) -> None:
    request = pb.ResumeChatRequest(user_id="ann", conversation_id="c1", turn_id="t1", after_seq=1)

    got = [response.event.seq async for response in stub.ResumeChat(request)]

    assert got == [2, 3]
    turns.error = errors.SeqNotReached("99")
    turns.events = []
    assert (await failure(stub.ResumeChat(request))).code is grpc.StatusCode.OUT_OF_RANGE


async def test_a_turn_is_cancelled(stub: Stub) -> None:
    def request(turn_id: str) -> pb.CancelChatRequest:
        return pb.CancelChatRequest(
            user_id="ann", conversation_id="c1", turn_id=turn_id, request_id="r1"
        )

    assert (await stub.CancelChat(request("t1"))).cancelled
    assert not (await stub.CancelChat(request("t2"))).cancelled


# ---------------------------------------------------------------- conversations


async def test_a_conversation_says_what_it_is(stub: Stub, store: FakeAgentStore) -> None:
    await say(store, "a")
    mine = pb.GetConversationMetaRequest(user_id="ann", conversation_id="c1")
    others = pb.GetConversationMetaRequest(user_id="bob", conversation_id="c1")

    assert (await stub.GetConversationMeta(mine)).conversation.message_count == 1
    told = await failure(stub.GetConversationMeta(others))
    assert (told.code, told.reason) == (grpc.StatusCode.NOT_FOUND, "CONVERSATION_NOT_FOUND")


async def test_conversations_are_listed_page_by_page(stub: Stub, store: FakeAgentStore) -> None:
    for name in "abc":
        await store.open(new_turn(name, conversation_id=name, now=NOON + timedelta(0)))
    request = pb.ListConversationsRequest(user_id="ann", page_size=2)

    first = await stub.ListConversations(request)
    request.page_token = first.next_page_token
    second = await stub.ListConversations(request)

    assert [found.conversation_id for found in first.conversations] == ["c", "b"]
    assert [found.conversation_id for found in second.conversations] == ["a"]
    assert second.next_page_token == ""
    request.user_id = "bob"
    assert (await failure(stub.ListConversations(request))).violations[0].field == "page_token"


async def test_a_timeline_is_read_in_both_directions(stub: Stub, store: FakeAgentStore) -> None:
    await say(store, *"abcde")

    async def read(token: str = "", *, from_end: bool = False) -> tuple[str, str, str]:
        answer = await stub.GetConversationTimeline(
            pb.GetConversationTimelineRequest(
                user_id="ann",
                conversation_id="c1",
                page_size=2,
                page_token=token,
                from_end=from_end,
            )
        )
        said = "".join(event.user_text.text for event in answer.events)
        return said, answer.previous_page_token, answer.next_page_token

    said, before, after = await read()
    assert (said, before) == ("ab", "")
    said, before, after = await read(after)
    assert said == "cd"
    assert (await read(before))[0] == "ab"
    said, _, after = await read(after)
    assert (said, after) == ("e", "")
    said, before, after = await read(from_end=True)
    assert (said, after) == ("de", "")
    assert (await read(before, from_end=True))[0] == "bc"


async def test_context_stats_are_given(stub: Stub, store: FakeAgentStore) -> None:
    await say(store, *"ab")

    request = pb.GetContextStatsRequest(user_id="ann", conversation_id="c1")
    answer = await stub.GetContextStats(request)

    assert (answer.last_report.total_tokens, answer.totals.turns) == (100, 2)


# ---------------------------------------------------------------- failures


TELLING = {errors.ModelUnavailable, errors.ModelRefused, errors.BudgetExceeded}
"""Their texts are made for callers where they are raised."""


@pytest.mark.parametrize("kind", errors.DomainError.__subclasses__())
def test_every_refusal_of_the_domain_has_a_meaning(kind: type[errors.DomainError]) -> None:
    field = errors.InvalidField("f", "d")
    error: errors.DomainError
    match kind:
        case errors.InvalidField:
            error = field
        case errors.InvalidRequest:
            error = errors.InvalidRequest([field])
        case _:
            error = kind.__new__(kind, "internal text")

    told = failure_of(error)

    assert told is not None
    assert told.reason == kind.reason
    assert ("internal text" in told.message) is (kind in TELLING)
    assert failed_turn(error) == Failed(told.reason, told.message)


def test_what_is_not_ours_is_left_to_others() -> None:
    assert failure_of(ValueError("x")) is None
    assert failure_of(errors.DomainError("x")) is None
    assert failed_turn(errors.DomainError("x")).reason == "INTERNAL"
