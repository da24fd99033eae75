"""Finding what to recall: SPEC_MEMORY 5."""

from memory_service.retrieve.alike import Alike, AlikeRows
from memory_service.retrieve.retriever import Retriever
from memory_service.retrieve.settings import RetrieveSettings

__all__ = ["Alike", "AlikeRows", "RetrieveSettings", "Retriever"]
