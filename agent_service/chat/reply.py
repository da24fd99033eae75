"""How a message is answered: remember, assemble, ask the model."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from agent_service.domain.acknowledgement import recall_text
from agent_service.domain.assemble import Assembly, assemble
from agent_service.domain.chat_context import Shares, chat_components
from agent_service.domain.components import Budget
from agent_service.domain.model import (
    ChatCommand,
    ContextAssembled,
    Delta,
    Done,
    Event,
    MemoryUsed,
    Message,
    Recall,
    RecallQuery,
    ThinkingSummary,
    Usage,
)
from agent_service.domain.render import RenderMode, render_memory
from agent_service.domain.tokens import TokenCounter
from agent_service.ports import (
    ConversationStore,
    MemoryPort,
    Model,
    ModelFinish,
    ModelOptions,
    ModelReasoning,
    ModelText,
    ModelUsage,
)

CUT_OFF = frozenset({"length", "content_filter"})
THINKING = "The model is thinking."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySettings:
    """What a deployment decides about its answers."""

    instructions: str
    budget: Budget
    shares: Shares
    render_mode: RenderMode
    recent_messages: int
    recall_timeout: float


class Reply:
    """Answers messages. Holds no state of any turn."""

    def __init__(
        self,
        conversations: ConversationStore,
        memory: MemoryPort,
        model: Model,
        counter: TokenCounter,
        settings: ReplySettings,
    ) -> None:
        self._conversations = conversations
        self._memory = memory
        self._model = model
        self._counter = counter
        self._settings = settings

    async def events(
        self, command: ChatCommand, *, conversation_id: str, turn_id: str
    ) -> AsyncGenerator[Event, None]:
        """Give the events after started; the last one is Done.

        Raises what the ports and the assembler raise; closing the generator closes the model call.
        """
        history, recall = await asyncio.gather(
            self._history(command.user_id, conversation_id, turn_id),
            self._recall(command, conversation_id),
        )
        yield MemoryUsed(recall)
        assembly = await asyncio.to_thread(self._assemble, command, history, recall)
        yield ContextAssembled(assembly.report)
        async with aclosing(self._ask(command, assembly)) as answer:
            async for event in answer:
                yield event

    async def _history(self, user_id: str, conversation_id: str, turn_id: str) -> list[Message]:
        if self._settings.recent_messages == 0:
            return []
        stored = await self._conversations.recent_messages(
            user_id, conversation_id, before_turn=turn_id, limit=self._settings.recent_messages
        )
        return [Message(message.role, message.text) for message in stored]

    async def _recall(self, command: ChatCommand, conversation_id: str) -> Recall:
        query = RecallQuery(
            user_id=command.user_id,
            conversation_id=conversation_id,
            text=recall_text(command.message),
            memory_types=command.memory_types,
            budgets=command.memory_budgets,
        )
        return await self._memory.recall(query, within=self._settings.recall_timeout)

    def _assemble(
        self, command: ChatCommand, history: Sequence[Message], recall: Recall
    ) -> Assembly:
        begin = time.perf_counter_ns()
        memory = render_memory(
            recall.items,
            mode=self._settings.render_mode,
            locale=command.locale,
            message=command.message,
        )
        components = chat_components(
            instructions=self._settings.instructions,
            memory=memory,
            history=history,
            user_text=command.message,
            shares=self._settings.shares,
        )
        assembly = assemble(components, self._settings.budget, self._counter)
        micros = (time.perf_counter_ns() - begin) // 1000
        return replace(assembly, report=replace(assembly.report, assemble_micros=micros))

    async def _ask(self, command: ChatCommand, assembly: Assembly) -> AsyncGenerator[Event, None]:
        report = assembly.report
        # Servers refuse a call whose prompt and answer together may exceed the window.
        room = report.usable - report.total_tokens + report.reserved_output
        options = ModelOptions(
            model=command.model,
            thinking=command.thinking,
            max_output_tokens=min(command.max_output_tokens, max(room, 1)),
        )
        usage: ModelUsage | None = None
        finish = "stop"
        thinking = False
        async with aclosing(self._model.stream(assembly.messages, options)) as pieces:
            async for piece in pieces:
                match piece:
                    case ModelText(text):
                        yield Delta(text)
                    case ModelReasoning() if not thinking:
                        thinking = True
                        yield ThinkingSummary(THINKING)
                    case ModelUsage():
                        usage = piece
                    case ModelFinish(reason):
                        finish = reason
        if usage is not None:
            yield Usage(usage.prompt_tokens, usage.completion_tokens)
        prompt_tokens = usage.prompt_tokens if usage else None
        yield Done(finish, incomplete=finish in CUT_OFF, actual_prompt_tokens=prompt_tokens)
