"""The route table: each route is one RPC, and its messages are the RPC's."""

from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, MethodDescriptor

from agent_service.v1 import agent_pb2
from memory_service.v1 import memory_pb2

_AGENT = agent_pb2.DESCRIPTOR.services_by_name["AgentService"]
_MEMORY = memory_pb2.DESCRIPTOR.services_by_name["MemoryService"]
SERVICES = {_AGENT.full_name: "agent", _MEMORY.full_name: "memory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route. Fields of the request come from the query, the body and the path.

    path_field is the dotted proto path that {memory_id} of the path fills. patched names the field
    that update_mask is about. resumes: Last-Event-ID says where to go on. bare: it needs no body,
    though it is no GET or DELETE.
    """

    method: str
    path: str
    rpc: MethodDescriptor
    summary: str
    path_field: str = ""
    patched: str = ""
    resumes: bool = False
    bare: bool = False

    @property
    def service(self) -> str:
        """Give the service that answers: agent or memory."""
        return SERVICES[self.rpc.containing_service.full_name]

    @property
    def request(self) -> Descriptor:
        """Give the message that the RPC takes."""
        return self.rpc.input_type

    @property
    def response(self) -> Descriptor:
        """Give the message that the RPC answers."""
        return self.rpc.output_type

    @property
    def streams(self) -> bool:
        """Tell whether it answers with events."""
        return bool(self.rpc.server_streaming)

    @property
    def takes_query(self) -> bool:
        """Tell whether fields may stand in the query; there a body may be left out."""
        return self.bare or self.method in {"GET", "DELETE"}

    @property
    def takes_body(self) -> bool:
        """Tell whether fields may stand in a JSON body."""
        return self.method != "GET"


def _agent(method: str, name: str, rpc: str, summary: str, **how: Any) -> Route:
    return Route(
        method=method,
        path=f"/api/v1/agent/{name}",
        rpc=_AGENT.methods_by_name[rpc],
        summary=summary,
        **how,
    )


def _memory(method: str, name: str, rpc: str, summary: str, **how: Any) -> Route:
    return Route(
        method=method,
        path=f"/api/v1/memory/{name}",
        rpc=_MEMORY.methods_by_name[rpc],
        summary=summary,
        **how,
    )


_ITEM = "items/{memory_id}"

ROUTES: tuple[Route, ...] = (
    _agent("POST", "chat", "Chat", "Run one turn and stream its events"),
    _agent("GET", "chat/resume", "ResumeChat", "Stream the rest of a turn", resumes=True),
    _agent("POST", "chat/cancel", "CancelChat", "Stop a running turn, keep what was said"),
    _agent("GET", "conversation-meta", "GetConversationMeta", "Give what a conversation is"),
    _agent("GET", "conversation-list", "ListConversations", "List conversations, newest first"),
    _agent("GET", "conversation-timeline", "GetConversationTimeline", "List what happened, by seq"),
    _agent("GET", "context-stats", "GetContextStats", "Give how much context was used"),
    _agent("GET", "schedule-preview", "GetSchedulePreview", "Give the plan proposed last"),
    _agent("GET", "schedule-state", "GetScheduleState", "Give the schedule of a conversation"),
    _agent("POST", "schedule-state", "SaveScheduleState", "Replace the schedule"),
    _memory("GET", "items", "ListMemories", "List memories, newest first"),
    _memory("POST", "items", "CreateMemory", "Store a memory by hand"),
    _memory(
        "POST",
        f"{_ITEM}/restore",
        "RestoreMemory",
        "Make it active again",
        path_field="memory_id",
        bare=True,
    ),
    _memory("GET", _ITEM, "GetMemory", "Give a memory", path_field="memory_id"),
    _memory(
        "PATCH",
        _ITEM,
        "UpdateMemory",
        "Change the fields that are given",
        path_field="memory.memory_id",
        patched="memory",
    ),
    _memory("DELETE", _ITEM, "DeleteMemory", "Mark it deleted", path_field="memory_id"),
    _memory("POST", "retrieve", "Retrieve", "Find what to recall for a query"),
    _memory("GET", "settings", "GetUserSettings", "Give what a user allows"),
    _memory(
        "PATCH",
        "settings",
        "UpdateUserSettings",
        "Change the settings that are given",
        patched="settings",
    ),
    _memory("GET", "stats", "GetStats", "Count what is stored and what is waiting"),
)
"""In the order of matching: an id may hold a slash, so restore stands before the item itself."""
