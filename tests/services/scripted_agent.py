"""Agent and memory services that answer as a test says, over gRPC, and keep what they heard."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from agent_service.v1 import agent_pb2 as agent_pb
from agent_service.v1 import agent_pb2_grpc
from memory_service.v1 import memory_pb2 as memory_pb
from memory_service.v1 import memory_pb2_grpc
from rpc.server import RunningServer, ServerSettings, Service, start

_ADD: dict[str, Callable[[Any, Any], None]] = {
    "agent_service.v1.AgentService": agent_pb2_grpc.add_AgentServiceServicer_to_server,
    "memory_service.v1.MemoryService": memory_pb2_grpc.add_MemoryServiceServicer_to_server,
}
Step = agent_pb.ChatEvent | float | asyncio.Event | Exception


class Scripted:
    """A servicer for every RPC of a service.

    answers: what an RPC gives, by name, or the exception it raises, or the seconds it hangs.
    script: the steps of a stream: an event is sent, a number is slept, an Event is waited for, an
    exception is raised.
    """

    def __init__(self, pb: Any, name: str) -> None:
        service = pb.DESCRIPTOR.services_by_name[name]
        self.name: str = service.full_name
        self._methods = service.methods_by_name
        self.answers: dict[str, Message | Exception | float] = {}
        self.script: list[Step] = []
        self.asked: list[tuple[str, Any]] = []
        self.metadata: list[dict[str, str]] = []
        self.sent = 0
        self.cancelled = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        method = self._methods[name]
        answer_class: Callable[..., Message] = GetMessageClass(method.output_type)

        async def unary(request: Any, context: Any) -> Message:
            self._heard(name, request, context)
            answer = self.answers.get(name, answer_class())
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, float):
                await asyncio.sleep(answer)
                return answer_class()
            return answer

        async def stream(request: Any, context: Any) -> AsyncIterator[Message]:
            self._heard(name, request, context)
            try:
                for step in self.script:
                    match step:
                        case agent_pb.ChatEvent():
                            self.sent += 1
                            yield answer_class(event=step)
                        case asyncio.Event():
                            await step.wait()
                        case Exception():
                            raise step
                        case _:
                            await asyncio.sleep(step)
            except (asyncio.CancelledError, GeneratorExit):
                self.cancelled.set()
                raise

        return stream if method.server_streaming else unary

    @property
    def request(self) -> Any:
        """The last request."""
        return self.asked[-1][1]

    def _heard(self, name: str, request: Any, context: Any) -> None:
        self.asked.append((name, request))
        self.metadata.append({str(k): str(v) for k, v in context.invocation_metadata()})


def scripted_agent() -> Scripted:
    return Scripted(agent_pb, "AgentService")


def scripted_memory() -> Scripted:
    return Scripted(memory_pb, "MemoryService")


@asynccontextmanager
async def serving_scripted(
    scripted: Scripted, *, token: str = "", ready: bool = True, listen: str = "127.0.0.1:0"
) -> AsyncIterator[RunningServer]:
    async def is_ready() -> bool:
        return ready

    service = Service(
        name=scripted.name,
        add=_ADD[scripted.name],
        servicer=scripted,
        failure_of=lambda _error: None,
        domain="scripted",
    )
    settings = ServerSettings(listen=listen, service_token=token, grace=0.5)
    server = await start(settings, service, ready=is_ready)
    try:
        yield server
    finally:
        await server.stop(0)


def events(*texts: str, conversation_id: str = "c1", turn_id: str = "t1") -> Iterator[Any]:
    """Give started and a delta for each text; seq from 1."""
    yield agent_pb.ChatEvent(
        seq=1,
        started=agent_pb.ChatStarted(conversation_id=conversation_id, turn_id=turn_id),
    )
    for seq, text in enumerate(texts, 2):
        yield agent_pb.ChatEvent(seq=seq, delta=agent_pb.TextDelta(text=text))


def done(seq: int) -> agent_pb.ChatEvent:
    return agent_pb.ChatEvent(seq=seq, done=agent_pb.ChatDone(finish_reason="stop"))
