"""Bringing what turns say to the memory service, which learns from it."""

from agent_service.outbox.relay import LearnRelay, RelaySettings
from agent_service.outbox.tend import tend_outbox

__all__ = ["LearnRelay", "RelaySettings", "tend_outbox"]
