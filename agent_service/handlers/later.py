"""RPCs that the contract names and this version does not offer."""

from typing import Any, NoReturn

from agent_service.handlers.failures import not_offered
from agent_service.v1 import agent_pb2_grpc as pb_grpc


async def _not_offered(self: object, request: object, context: Any) -> NoReturn:
    del self, request, context
    what = "this RPC"
    raise not_offered(what)


class Later(pb_grpc.AgentServiceServicer):
    """Answers UNIMPLEMENTED; gRPC's own way would be an exception without a reason."""

    UpdateConversation = _not_offered
    DeleteConversation = _not_offered
    GetSchedulePreview = _not_offered
    GetScheduleState = _not_offered
    SaveScheduleState = _not_offered
