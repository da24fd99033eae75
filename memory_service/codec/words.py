"""Enums of the proto ↔ words of the domain. Unspecified is in none of the tables."""

from memory_service.domain.ingest import Action, JobState
from memory_service.domain.model import IndexState, MemoryStatus, MemoryType, Operation, Role
from memory_service.domain.recall import Cut, Leg, LegState, Mode
from memory_service.v1 import memory_pb2 as pb

MEMORY_TYPES = {
    int(pb.MEMORY_TYPE_CONSTRAINT): MemoryType.CONSTRAINT,
    int(pb.MEMORY_TYPE_PREFERENCE): MemoryType.PREFERENCE,
    int(pb.MEMORY_TYPE_TODO_HINT): MemoryType.TODO_HINT,
    int(pb.MEMORY_TYPE_FACT): MemoryType.FACT,
}
STATUSES = {
    int(pb.MEMORY_STATUS_ACTIVE): MemoryStatus.ACTIVE,
    int(pb.MEMORY_STATUS_ARCHIVED): MemoryStatus.ARCHIVED,
    int(pb.MEMORY_STATUS_SUPERSEDED): MemoryStatus.SUPERSEDED,
    int(pb.MEMORY_STATUS_DELETED): MemoryStatus.DELETED,
}
SETTABLE_STATUSES = {
    number: status
    for number, status in STATUSES.items()
    if status in {MemoryStatus.ACTIVE, MemoryStatus.ARCHIVED}
}
MODES = {int(pb.RETRIEVE_MODE_HYBRID): Mode.HYBRID, int(pb.RETRIEVE_MODE_LEGACY): Mode.LEGACY}
CUTS = {
    int(pb.RETRIEVE_CUT_OFF): Cut.OFF,
    int(pb.RETRIEVE_CUT_GATE): Cut.GATE,
    int(pb.RETRIEVE_CUT_TIGHT): Cut.TIGHT,
    int(pb.RETRIEVE_CUT_STRICT): Cut.STRICT,
}
ROLES = {
    int(pb.MESSAGE_ROLE_USER): Role.USER,
    int(pb.MESSAGE_ROLE_ASSISTANT): Role.ASSISTANT,
    int(pb.MESSAGE_ROLE_SYSTEM): Role.SYSTEM,
    int(pb.MESSAGE_ROLE_TOOL): Role.TOOL,
}
JOB_STATES = {
    int(pb.JOB_STATE_PENDING): JobState.PENDING,
    int(pb.JOB_STATE_RUNNING): JobState.RUNNING,
    int(pb.JOB_STATE_DONE): JobState.DONE,
    int(pb.JOB_STATE_PARKED): JobState.PARKED,
}

MEMORY_TYPE_OF = {word: pb.MemoryType.ValueType(number) for number, word in MEMORY_TYPES.items()}
"""A stored type unknown to this version is missing here: MEMORY_TYPE_UNSPECIFIED."""
STATUS_OF = {word: pb.MemoryStatus.ValueType(number) for number, word in STATUSES.items()}
JOB_STATE_OF = {word: pb.JobState.ValueType(number) for number, word in JOB_STATES.items()}
ACTION_OF = {
    Action.ADD: pb.DECISION_ACTION_ADD,
    Action.UPDATE: pb.DECISION_ACTION_UPDATE,
    Action.NONE: pb.DECISION_ACTION_NONE,
}
INDEX_STATE_OF = {
    IndexState.PENDING: pb.INDEX_STATE_PENDING,
    IndexState.SYNCED: pb.INDEX_STATE_SYNCED,
    IndexState.FAILED: pb.INDEX_STATE_FAILED,
    IndexState.REMOVED: pb.INDEX_STATE_REMOVED,
}
ROLE_OF = {word: pb.MessageRole.ValueType(number) for number, word in ROLES.items()}
OPERATION_OF = {
    Operation.CREATE: pb.HISTORY_OPERATION_CREATE,
    Operation.UPDATE: pb.HISTORY_OPERATION_UPDATE,
    Operation.SUPERSEDE: pb.HISTORY_OPERATION_SUPERSEDE,
    Operation.ARCHIVE: pb.HISTORY_OPERATION_ARCHIVE,
    Operation.DELETE: pb.HISTORY_OPERATION_DELETE,
    Operation.RESTORE: pb.HISTORY_OPERATION_RESTORE,
    Operation.ERASE: pb.HISTORY_OPERATION_ERASE,
}
LEG_OF = {
    Leg.PINNED: pb.RETRIEVE_LEG_PINNED,
    Leg.SEMANTIC: pb.RETRIEVE_LEG_SEMANTIC,
    Leg.KEYWORD: pb.RETRIEVE_LEG_KEYWORD,
}
LEG_STATE_OF = {
    LegState.OK: pb.SOURCE_STATE_OK,
    LegState.DEGRADED: pb.SOURCE_STATE_DEGRADED,
    LegState.SKIPPED: pb.SOURCE_STATE_SKIPPED,
    LegState.FAILED: pb.SOURCE_STATE_FAILED,
}
