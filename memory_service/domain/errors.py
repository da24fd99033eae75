"""What the domain refuses; handlers map each to a gRPC code in one table."""

from collections.abc import Sequence


class DomainError(Exception):
    """A refusal with a reason that clients may act on; its text is safe to show."""

    reason = "INTERNAL"


class MemoryNotFound(DomainError):
    """No such memory of this user."""

    reason = "MEMORY_NOT_FOUND"


class EqualMemoryExists(DomainError):
    """Another active memory says the same."""

    reason = "EQUAL_MEMORY"


class MemoryIdTaken(DomainError):
    """A new memory was given an id that another one has, perhaps of another user."""

    reason = "MEMORY_ID_TAKEN"


class RequestIdReused(DomainError):
    """The request_id was used for another body or RPC."""

    reason = "REQUEST_ID_REUSED"


class StaleVersion(DomainError):
    """The memory changed since it was read."""

    reason = "STALE_VERSION"


class MemoryNotInUse(DomainError):
    """The memory is deleted or superseded; it must be restored before it is changed."""

    reason = "MEMORY_NOT_IN_USE"


class MemoryNotAllowed(DomainError):
    """The user's settings forbid storing this."""

    reason = "SETTINGS_FORBID"


class RevisionNotReached(DomainError):
    """min_revision is not known yet; try again soon."""

    reason = "REVISION_NOT_REACHED"


class StoreUnavailable(DomainError):
    """SQL did not answer; try again soon."""

    reason = "STORE_UNAVAILABLE"


class IndexUnavailable(DomainError):
    """The vector index did not answer; cause says why: timeout, breaker_open, unavailable."""

    reason = "INDEX_UNAVAILABLE"

    def __init__(self, cause: str) -> None:
        """Keep the cause, one of the reasons that RetrieveSource names."""
        super().__init__(cause)
        self.cause = cause


class EmbedderUnavailable(DomainError):
    """The embedder did not answer; cause as in IndexUnavailable."""

    reason = "EMBEDDER_UNAVAILABLE"

    def __init__(self, cause: str) -> None:
        """Keep the cause, one of the reasons that RetrieveSource names."""
        super().__init__(cause)
        self.cause = cause


class ModelUnavailable(DomainError):
    """The model that reads or judges did not answer; try again soon."""

    reason = "MODEL_UNAVAILABLE"


class ModelUnreadable(DomainError):
    """The model refused this turn, or what it answered cannot be used."""

    reason = "MODEL_UNREADABLE"


class JobNotFound(DomainError):
    """No such job of this user."""

    reason = "JOB_NOT_FOUND"


class JobNotParked(DomainError):
    """Only a parked job is queued again."""

    reason = "JOB_NOT_PARKED"


class MemoriesChanging(DomainError):
    """What was decided about is changed by others again and again."""

    reason = "MEMORIES_CHANGING"


class HistoryNotKept(DomainError):
    """The revision was never reached, or what happened since is not kept any more."""

    reason = "REVISION_OUT_OF_RANGE"


class VersionNotFound(DomainError):
    """The memory had no such version, or its words are removed."""

    reason = "VERSION_NOT_FOUND"


class LeaseLost(DomainError):
    """Another worker took the job."""

    reason = "LEASE_LOST"


class InvalidField(DomainError):
    """A request field is not acceptable."""

    reason = "INVALID_FIELD"

    def __init__(self, field: str, description: str) -> None:
        """Name the field by its proto path and say what is expected of it."""
        super().__init__(f"{field}: {description}")
        self.field = field
        self.description = description


class InvalidRequest(DomainError):
    """Some request fields are not acceptable: all that were found, in the order of the proto."""

    reason = "INVALID_FIELD"

    def __init__(self, violations: Sequence[InvalidField]) -> None:
        """Keep the fields; there is at least one."""
        super().__init__("; ".join(str(violation) for violation in violations))
        self.violations = tuple(violations)


class AnswerTooLarge(DomainError):
    """The item does not fit into the answer; ask for it or store it with another request."""

    reason = "RESPONSE_BYTES"
