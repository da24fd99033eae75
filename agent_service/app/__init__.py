"""The composition root: the only place that constructs what the service is made of."""

from agent_service.app.opening import AgentApp, open_app
from agent_service.app.parts import migrate, server_settings
from agent_service.app.relaying import Relaying, open_outbox, open_relaying

__all__ = [
    "AgentApp",
    "Relaying",
    "migrate",
    "open_app",
    "open_outbox",
    "open_relaying",
    "server_settings",
]
