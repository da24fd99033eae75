"""Facts, and the memories that they would become, with values that a test need not care about."""

from typing import Any

from memory_service.domain.drafts import draft
from memory_service.domain.ingest import Fact
from memory_service.domain.model import Memory, MemoryType
from tests.builders.memories import NOW
from tests.builders.turns import turn


def fact(content: str = "I like tea", **more: Any) -> Fact:
    """Give a fact that an extractor read."""
    values = {"memory_type": MemoryType.PREFERENCE} | more
    return Fact(content=content, **values)


def drafted(content: str = "I like tea", memory_id: str = "new", **more: Any) -> Memory:
    """Give the memory that a fact would become."""
    return draft(fact(content, **more), turn(), memory_id, NOW)
