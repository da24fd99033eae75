"""A chat on fakes: store, memory and model, and the turns over them."""

from collections.abc import Sequence
from typing import Any

from agent_service.chat import ChatTurns, Pace, Reply, ReplySettings, TurnSettings
from agent_service.domain.chat_context import Shares
from agent_service.domain.components import Budget
from agent_service.domain.model import ChatCommand, Delta, MemoryType, RecalledMemory, TurnEvent
from agent_service.domain.render import RenderMode
from agent_service.domain.tokens import FunctionCounter
from agent_service.handlers.failures import failed_turn
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.faulty_agent_store import FaultyAgentStore
from tests.fakes.memory_port import FakeMemory
from tests.fakes.model import FakeModel

CHARACTERS = FunctionCounter(len)
PEANUTS = RecalledMemory(
    memory_id="m1",
    memory_type=MemoryType.CONSTRAINT,
    title="",
    content="Never peanuts",
    score=0.9,
    legs=("pinned",),
)


def command(message: str = "Hello there", **fields: Any) -> ChatCommand:
    wanted: dict[str, Any] = {
        "user_id": "ann",
        "conversation_id": "c1",
        "client_message_id": f"m-{message}",
        "message": message,
        "digest": message.encode(),
        "request_id": "r1",
        **fields,
    }
    return ChatCommand(**wanted)


def reply_settings(**fields: Any) -> ReplySettings:
    wanted: dict[str, Any] = {
        "instructions": "Be kind.",
        "budget": Budget(window=10_000),
        "shares": Shares(),
        "render_mode": RenderMode.TYPED_V2,
        "recent_messages": 40,
        "recall_timeout": 0.05,
        **fields,
    }
    return ReplySettings(**wanted)


class Chat:
    """Turns on fakes, at a pace that tests can wait for; every part may be reached into."""

    def __init__(
        self,
        *scripts: Any,
        store: FaultyAgentStore | None = None,
        window: int = 10_000,
        queue: int = 64,
        **fields: Any,
    ) -> None:
        self.store = store or FaultyAgentStore()
        self.memory = FakeMemory(PEANUTS)
        self.model = FakeModel(*scripts)
        self.clock = FakeClock()
        self.ids = FakeIds()
        self.reply = Reply(
            self.store,
            self.memory,
            self.model,
            CHARACTERS,
            reply_settings(budget=Budget(window=window)),
        )
        wanted: dict[str, Any] = {
            "pace": Pace(heartbeat=0.01, event_batch=0.0, store_pause=0.001, queue=queue),
            "explain": failed_turn,
            "busy_wait": 0.0,
            "resume_grace": 0.0,
            "resume_poll": 0.005,
            "title_characters": 24,
            **fields,
        }
        self.settings = TurnSettings(**wanted)
        self.turns = self.process()

    def process(self) -> ChatTurns:
        """Give the turns of one more process over the same store."""
        return ChatTurns(self.store, self.store, self.reply, self.settings, self.clock, self.ids)

    async def say(self, message: str = "Hello there", **fields: Any) -> list[TurnEvent]:
        """Run a turn to its end, the title included."""
        events = [event async for event in self.turns.run(command(message, **fields))]
        await self.turns.settle()
        return events

    async def stored(self, turn_id: str, *, conversation_id: str = "c1") -> Sequence[TurnEvent]:
        return await self.store.events(
            "ann", conversation_id, turn_id, after_seq=0, now=self.clock()
        )


def answer_of(events: Sequence[TurnEvent]) -> str:
    return "".join(event.event.text for event in events if isinstance(event.event, Delta))
