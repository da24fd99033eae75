"""The composition root: the only place that constructs what the service is made of."""

from memory_service.app.opening import MemoryApp, migrate, open_app
from memory_service.app.parts import server_settings

__all__ = ["MemoryApp", "migrate", "open_app", "server_settings"]
