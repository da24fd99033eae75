"""The stand-in where no model is configured: says so, and shows what it would have sent."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple

from agent_service.domain.components import Budget
from agent_service.domain.model import Message, Role
from agent_service.domain.render import Language, language
from agent_service.domain.sections import MEMORY_BLOCK
from agent_service.domain.tokens import TokenCounter
from agent_service.ports import ModelEvent, ModelFinish, ModelOptions, ModelText, ModelUsage

_BLOCK = re.compile(rf"<{MEMORY_BLOCK}\b[^>\n]*>\n(.*?)</{MEMORY_BLOCK}>", re.DOTALL)

_FRAMING = Budget(window=1)
"""For what a call and a message take beside their text."""


class _Words(NamedTuple):
    no_model: str
    memories: str
    no_memories: str
    sent: str


_WORDS: Mapping[Language, _Words] = {
    Language.EN: _Words(
        no_model=(
            "No language model is configured, so this is not an answer: "
            "it shows what a model would have been sent.\n"
            "To get answers, set AGENT_LLM_MODEL and, unless it is OpenAI's, AGENT_LLM_BASE_URL."
        ),
        memories="Memories that would have been sent:",
        no_memories="No memories would have been sent.",
        sent=(
            "Messages that would have been sent: {all} ({system} of instructions and memories, "
            "{earlier} of the conversation so far, then yours), {tokens} tokens."
        ),
    ),
    Language.ZH: _Words(
        no_model=(
            "尚未配置语言模型，因此这不是回答，只是展示本来会发送给模型的内容。\n"
            "要得到回答，请设置 AGENT_LLM_MODEL；"
            "若不是 OpenAI 的模型，还请设置 AGENT_LLM_BASE_URL。"
        ),
        memories="本来会发送的记忆：",
        no_memories="本来不会发送任何记忆。",
        sent=(
            "本来会发送的消息：{all} 条（指令与记忆 {system} 条，此前的对话 {earlier} 条，"
            "以及您的这一条），共 {tokens} 个词元。"
        ),
    ),
}


class OfflineModel:
    """Implements ports.Model without any model; the same messages give the same answer.

    In the language of the user's message, English or Chinese. Of the options it knows how long an
    answer may be.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    async def stream(
        self, messages: Sequence[Message], options: ModelOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        """Give the notice line by line, the tokens of both sides, and how it ended."""
        sent = self._prompt_tokens(messages)
        whole = notice(messages, tokens=sent)
        most = options.max_output_tokens
        answer = self._counter.truncate(whole, most) if most else whole
        for line in answer.splitlines(keepends=True):
            await asyncio.sleep(0)
            yield ModelText(line)
        yield ModelUsage(sent, self._counter.count_many([answer])[0])
        yield ModelFinish("stop" if answer == whole else "length")

    def _prompt_tokens(self, messages: Sequence[Message]) -> int:
        """Count as the assembler does: the texts and the framing of a call and its messages."""
        framing = _FRAMING.per_call + _FRAMING.per_message * len(messages)
        return framing + sum(self._counter.count_many([message.content for message in messages]))

    async def close(self) -> None:
        """Hold nothing, let go of nothing."""


def notice(messages: Sequence[Message], *, tokens: int) -> str:
    """Say that there is no model, which memories would have been sent, and how many messages."""
    words = _WORDS[language("", _last_of_user(messages))]
    memories = [block.strip() for block in _blocks(messages)]
    shown = "\n".join([words.memories, *memories]) if memories else words.no_memories
    system = sum(message.role is Role.SYSTEM for message in messages)
    sent = words.sent.format(
        all=len(messages), system=system, earlier=max(len(messages) - system - 1, 0), tokens=tokens
    )
    return f"{words.no_model}\n\n{shown}\n\n{sent}"


def _last_of_user(messages: Sequence[Message]) -> str:
    said = [message.content for message in messages if message.role is Role.USER]
    return said[-1] if said else ""


def _blocks(messages: Sequence[Message]) -> list[str]:
    """Give what stands in the memory blocks; only system messages have true ones."""
    system = (message.content for message in messages if message.role is Role.SYSTEM)
    return [block for content in system for block in _BLOCK.findall(content)]
