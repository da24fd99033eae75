"""A small bilingual user, so that the first question already finds something."""

import grpc

from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc
from rpc.errors import read_failure
from stack.failures import StartFailed

USER = "demo"
QUESTIONS = ("Plan a dinner for my friends on Saturday", "周六晚上请朋友吃饭，怎么安排？")
PATIENCE = 60.0
"""Seconds: the first writes on a busy machine."""
_REQUEST = "memory-stack-demo-1"

_CONSTRAINTS = [
    "User is allergic to peanuts.",
    "用户周三晚上不排任何安排。",
    "Never plan anything for the user before 9:00.",
]
_PREFERENCES = [
    "User prefers tea over coffee.",
    "用户喜欢靠窗的座位。",
    "User likes Sichuan food and cooks for friends on Saturdays.",
]
_TO_DOS = ["用户周五前要交英语作文。", "User has to book a table for the dinner with friends."]
_FACTS = [
    "User lives in Lyon, near the old harbour.",
    "用户有一只叫豆豆的猫。",
    "User works as a nurse and has night shifts every second week.",
    "用户的妹妹在杭州读大学。",
    "User's best friend Marco is a vegetarian.",
]


def seed(address: str, *, token: str = "") -> int:
    """Store the demo user's memories, and give how many the user has; again doubles nothing.

    Raises StartFailed if the service does not take them.
    """
    groups = [
        (pb.MEMORY_TYPE_CONSTRAINT, _CONSTRAINTS),
        (pb.MEMORY_TYPE_PREFERENCE, _PREFERENCES),
        (pb.MEMORY_TYPE_TODO_HINT, _TO_DOS),
        (pb.MEMORY_TYPE_FACT, _FACTS),
    ]
    memories = [
        pb.Memory(memory_type=memory_type, content=content)
        for memory_type, contents in groups
        for content in contents
    ]
    request = pb.BatchCreateMemoriesRequest(user_id=USER, request_id=_REQUEST, memories=memories)
    metadata = (("authorization", f"Bearer {token}"),) if token else None
    with grpc.insecure_channel(address) as channel:
        memory = memory_pb2_grpc.MemoryServiceStub(channel)
        try:
            memory.BatchCreateMemories(request, timeout=PATIENCE, metadata=metadata)
            asked = pb.GetStatsRequest(user_id=USER)
            stats = memory.GetStats(asked, timeout=PATIENCE, metadata=metadata)
        except grpc.RpcError as error:
            failure = read_failure(error)
            message = f"memory did not take the demo user: {failure.code.name} {failure.reason}"
            raise StartFailed(message) from None
    return sum(stats.active_by_type.values())
