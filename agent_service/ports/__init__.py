"""What the use cases need from the outside world, as Protocols.

Every port has a fake in tests/fakes and at least one adapter; all pass the same contract suite.
"""

from agent_service.ports.conversations import (
    AssistantSaid,
    ContextStats,
    ConversationStore,
    DialogueMessage,
    StoredTimelineEvent,
    TimelineKind,
    UserSaid,
)
from agent_service.ports.learning import (
    LONGEST_WAIT,
    ClaimedTurn,
    LearnOutbox,
    LearnTarget,
    OutboxState,
    ParkedTurn,
    ParkedTurns,
)
from agent_service.ports.memory import (
    MemoryPort,
)
from agent_service.ports.model import (
    Model,
    ModelEvent,
    ModelFinish,
    ModelOptions,
    ModelReasoning,
    ModelText,
    ModelUsage,
)
from agent_service.ports.turns import (
    NewTurn,
    TurnClosing,
    TurnKnown,
    TurnLease,
    TurnOpened,
    TurnStore,
)
from agent_service.ports.types import (
    Clock,
    NewId,
)

__all__ = [
    "LONGEST_WAIT",
    "AssistantSaid",
    "ClaimedTurn",
    "Clock",
    "ContextStats",
    "ConversationStore",
    "DialogueMessage",
    "LearnOutbox",
    "LearnTarget",
    "MemoryPort",
    "Model",
    "ModelEvent",
    "ModelFinish",
    "ModelOptions",
    "ModelReasoning",
    "ModelText",
    "ModelUsage",
    "NewId",
    "NewTurn",
    "OutboxState",
    "ParkedTurn",
    "ParkedTurns",
    "StoredTimelineEvent",
    "TimelineKind",
    "TurnClosing",
    "TurnKnown",
    "TurnLease",
    "TurnOpened",
    "TurnStore",
    "UserSaid",
]
