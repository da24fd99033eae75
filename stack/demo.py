"""A small bilingual user, so that the first question already finds something."""

import grpc

from memory_service.v1 import memory_pb2 as pb
from memory_service.v1 import memory_pb2_grpc

USER = "demo"
QUESTION = "Plan a dinner for my friends on Saturday"

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


def seed(address: str) -> int:
    """Store the demo user's memories and give how many there are; again doubles nothing."""
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
    request = pb.BatchCreateMemoriesRequest(
        user_id=USER, request_id="memory-stack-demo-1", memories=memories
    )
    with grpc.insecure_channel(address) as channel:
        answer = memory_pb2_grpc.MemoryServiceStub(channel).BatchCreateMemories(request, timeout=60)
    return sum(not result.HasField("error") for result in answer.results)
