"""RPCs that the contract names and this version does not offer."""

from typing import Any

from agent_service.handlers.failures import not_offered
from agent_service.v1 import agent_pb2_grpc as pb_grpc


def _later(rpc: str) -> Any:
    async def refuse(self: object, request: object, context: Any) -> Any:
        del self, request, context
        raise not_offered(rpc)

    return refuse


class Later(pb_grpc.AgentServiceServicer):
    """Answers UNIMPLEMENTED; gRPC's own way would be an exception without a reason."""

    UpdateConversation = _later("UpdateConversation")
    DeleteConversation = _later("DeleteConversation")
    GetSchedulePreview = _later("GetSchedulePreview")
    GetScheduleState = _later("GetScheduleState")
    SaveScheduleState = _later("SaveScheduleState")
