"""What the domain refuses; handlers map each to a gRPC code in one table."""

from collections.abc import Sequence


class DomainError(Exception):
    """A refusal with a reason that clients may act on; its text is safe to show."""

    reason = "INTERNAL"


class ConversationNotFound(DomainError):
    """No such conversation of this user."""

    reason = "CONVERSATION_NOT_FOUND"


class TurnNotFound(DomainError):
    """No such turn of this conversation."""

    reason = "TURN_NOT_FOUND"


class TurnRunning(DomainError):
    """Another turn of this conversation is running."""

    reason = "TURN_RUNNING"


class LeaseLost(DomainError):
    """The turn was taken over by another process."""

    reason = "TURN_LOST"


class ClientMessageIdReused(DomainError):
    """The client_message_id stands for another message."""

    reason = "REQUEST_ID_REUSED"


class SeqNotReached(DomainError):
    """The turn never reached that event."""

    reason = "SEQ_NOT_REACHED"


class StoreUnavailable(DomainError):
    """SQL did not answer; try again soon."""

    reason = "STORE_UNAVAILABLE"


class ModelUnavailable(DomainError):
    """The model did not answer or stopped in the middle; try again."""

    reason = "MODEL_UNAVAILABLE"


class ModelRefused(DomainError):
    """The model will not take this request; the same again fails again."""

    reason = "MODEL_REFUSED"


class BudgetExceeded(DomainError):
    """What must be said to the model does not fit."""

    reason = "CONTEXT_BUDGET_EXCEEDED"

    def __init__(self, *, needed: int, usable: int, ids: tuple[str, ...]) -> None:
        """Keep how much is needed, how much may be used, and which components need it."""
        super().__init__(f"{', '.join(ids)} need {needed} tokens, {usable} are usable")
        self.needed = needed
        self.usable = usable
        self.ids = ids


class InvalidComponent(DomainError, ValueError):
    """A component breaks its own rules, such as being required and blank."""

    reason = "INVALID_COMPONENT"

    def __init__(self, component: str, problem: str) -> None:
        """Name the component by its id and say which rule it breaks."""
        super().__init__(f"component {component!r}: {problem}")
        self.component = component
        self.problem = problem


class InvalidField(DomainError):
    """A request field is not acceptable."""

    reason = "INVALID_FIELD"

    def __init__(self, field: str, description: str) -> None:
        """Name the field by its proto path and say what is expected of it."""
        super().__init__(f"{field}: {description}")
        self.field = field
        self.description = description


class MemoryUnavailable(Exception):
    """Nobody can be told to learn now; cause is one word. No caller is ever told, the relay is."""

    def __init__(self, cause: str) -> None:
        """Keep the cause."""
        super().__init__(cause)
        self.cause = cause


class TurnRefused(Exception):
    """One turn is not accepted; the text is a code and names of fields. For the relay alone."""


class InvalidRequest(DomainError):
    """Some request fields are not acceptable: all that were found, in the order of their checks."""

    reason = "INVALID_FIELD"

    def __init__(self, violations: Sequence[InvalidField]) -> None:
        """Keep the fields; there is at least one."""
        super().__init__("; ".join(str(violation) for violation in violations))
        self.violations = tuple(violations)
