"""A Model that does what a test scripts, and remembers what it was asked."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from agent_service.domain.model import Message
from agent_service.ports import ModelEvent, ModelFinish, ModelOptions, ModelText, ModelUsage

Step = ModelEvent | Exception | asyncio.Event | float
"""An event to give, an error to raise, something to wait for, or seconds to wait."""


@dataclass
class ModelCall:
    """One call; ended is set when it is over: finished, failed or closed."""

    messages: tuple[Message, ...]
    options: ModelOptions
    given: int = 0
    """Steps that were taken."""
    finished: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class FakeModel:
    """Each call takes the next script, the last one is used again and again."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts: list[Sequence[Step]] = list(scripts) or [says("Hi")]
        self.calls: list[ModelCall] = []

    async def stream(
        self, messages: Sequence[Message], options: ModelOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        call = ModelCall(tuple(messages), options)
        self.calls.append(call)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        try:
            for step in script:
                call.given += 1
                match step:
                    case Exception():
                        raise step
                    case asyncio.Event():
                        await step.wait()
                    case float():
                        await asyncio.sleep(step)
                    case _:
                        yield step
            call.finished = True
        finally:
            call.ended.set()


def says(*pieces: str, prompt: int = 11, finish: str = "stop") -> list[Step]:
    """Script an answer in pieces, with its usage and its end."""
    words: list[Step] = [ModelText(piece) for piece in pieces]
    return [*words, ModelUsage(prompt, len(pieces)), ModelFinish(finish)]
