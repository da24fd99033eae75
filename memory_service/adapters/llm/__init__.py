"""A language model behind any OpenAI-compatible API: it reads facts and judges relations.

Importing this takes seconds, which is why only what uses a model imports it.
"""

from memory_service.adapters.llm.chat_model import ChatModel
from memory_service.adapters.llm.endpoint import ModelEndpoint
from memory_service.adapters.llm.extractor import LlmExtractor
from memory_service.adapters.llm.judge import LlmJudge

__all__ = ["ChatModel", "LlmExtractor", "LlmJudge", "ModelEndpoint"]
