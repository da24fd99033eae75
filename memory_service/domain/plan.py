"""What the facts of one turn change: decided one after the other, each seeing those before it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_service.domain.change import SYSTEM, Change
from memory_service.domain.decide import is_comparable
from memory_service.domain.ingest import Action, Decision, IngestOutcome, Intent
from memory_service.domain.model import Memory, MemoryStatus, Operation, UserState
from memory_service.domain.text import active_key
from memory_service.domain.write import refreshed, superseded


class Plan:
    """Decisions and the changes they make, on top of what is stored at a revision of the user."""

    def __init__(self, state: UserState, intent: Intent, warnings: Iterable[str]) -> None:
        """Begin with nothing; the state is that from before anything else was read."""
        self.state = state
        self.changes: list[Change] = []
        self.kept: list[Memory] = []
        """What is kept word for word, whatever is decided about facts."""
        self._intent = intent
        self._decisions: list[Decision] = []
        self._warnings = list(warnings)
        self._compared: list[Memory] = []
        self._rows: dict[str, Memory] = {}

    def seen(self, memory: Memory) -> Memory:
        """Give a stored memory as the decisions so far leave it."""
        return self._rows.get(memory.memory_id, memory)

    def equal(self, fact: Memory) -> Memory | None:
        """Give the active memory that says the same, among those that were changed."""
        return next(
            (
                row
                for row in self._rows.values()
                if is_comparable(fact, row)
                and row.memory_type is fact.memory_type
                and active_key(row) == active_key(fact)
            ),
            None,
        )

    def made(self, fact: Memory) -> Sequence[Memory]:
        """Give the memories made so far that a fact has to be compared with."""
        ids = {change.after.memory_id for change in self.changes if change.before is None}
        return [self._rows[one] for one in sorted(ids) if is_comparable(fact, self._rows[one])]

    def note(self, decision: Decision, warnings: Iterable[str] = ()) -> None:
        """Note a decision about a fact that was dropped at once."""
        self._decisions.append(decision)
        self._warnings.extend(warnings)

    def keep(self, memories: Iterable[Memory], warnings: Iterable[str]) -> None:
        """Note what of the turn is kept word for word."""
        self.kept.extend(memories)
        self._warnings.extend(warnings)

    def add(
        self,
        draft: Memory,
        decision: Decision,
        compared: Iterable[Memory],
        warnings: Iterable[str] = (),
    ) -> None:
        """Note a decision about a draft, whose targets are among what it was compared with."""
        known = {memory.memory_id: self.seen(memory) for memory in compared}
        self._compared.append(draft)
        self.note(decision, warnings)
        for change in _changes(draft, decision, known):
            self._rows[change.after.memory_id] = change.after
            self.changes.append(change)

    @property
    def outcome(self) -> IngestOutcome:
        """What to tell about the turn; each warning once."""
        return IngestOutcome(
            intent=self._intent,
            decisions=tuple(self._decisions),
            warnings=tuple(dict.fromkeys(self._warnings)),
        )

    @property
    def new_ids(self) -> frozenset[str]:
        """The ids that the plan makes for facts."""
        return frozenset(each.after.memory_id for each in self.changes if each.before is None)

    def is_stale(self, state: UserState, changed: Iterable[Memory]) -> bool:
        """Tell whether the plan has to be made anew: it might be another one now.

        state is the user's now, changed the memories that changed since the plan's. So it is if the
        settings are others, the user was erased, or a memory changed that the facts are compared
        with: a candidate, or one that was none because it was not there or not active.
        """
        if state.settings != self.state.settings:
            return True
        if state.erase_revision > self.state.revision:
            return True
        touched = self._rows.keys()
        return any(
            memory.memory_id in touched
            or is_comparable(fact, replace(memory, status=MemoryStatus.ACTIVE))
            for memory in changed
            for fact in self._compared
        )


def _changes(draft: Memory, decision: Decision, known: dict[str, Memory]) -> list[Change]:
    """Give what a decision changes: what makes way first."""

    def change(operation: Operation, before: Memory | None, after: Memory) -> Change:
        return Change(
            operation=operation,
            actor=SYSTEM,
            reason=decision.reason,
            before=before,
            after=after,
            decision=decision,
        )

    if decision.action is Action.ADD:
        gone = [known[one] for one in decision.superseded_ids]
        return [
            *(change(Operation.SUPERSEDE, row, superseded(row, draft)) for row in gone),
            change(Operation.CREATE, None, draft),
        ]
    if not decision.memory_id:
        return []
    before = known[decision.memory_id]
    after = decision.fact if decision.action is Action.UPDATE else refreshed(before, draft)
    return [change(Operation.UPDATE, before, after)]
