"""A chat model behind any OpenAI-compatible API."""

from agent_service.adapters.model_openai.endpoint import ModelEndpoint, ThinkingForm
from agent_service.adapters.model_openai.model import OpenAIModel

__all__ = ["ModelEndpoint", "OpenAIModel", "ThinkingForm"]
