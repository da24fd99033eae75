"""The outbox in memory: LearnOutbox and ParkedTurns, as the contract suite says."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_service.domain.learning import TurnToLearn
from agent_service.domain.model import Role
from agent_service.ports import LONGEST_WAIT, ClaimedTurn, NewId, OutboxState, ParkedTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """What the outbox asks to learn, for tests to look at; answer is empty if there is none."""

    user_id: str
    conversation_id: str
    turn_id: str
    message: str
    answer: str
    timezone: str


def learning_of(turn: TurnToLearn) -> Learning:
    """Give what a turn that is not delivered yet says."""
    said = {spoken.role: spoken for spoken in turn.messages}
    return Learning(
        user_id=turn.user_id,
        conversation_id=turn.conversation_id,
        turn_id=turn.turn_id,
        message=said[Role.USER].content,
        answer=said[Role.ASSISTANT].content if Role.ASSISTANT in said else "",
        timezone=said[Role.USER].timezone,
    )


@dataclass
class Entry:
    """A turn in the outbox; content is gone once it is done."""

    turn: TurnToLearn
    create_time: datetime
    state: str = "pending"
    attempt: int = 0
    error: str = ""
    has_content: bool = True


@dataclass
class _Queue:
    due: datetime | None
    token: str = ""


class FakeLearnOutbox:
    """entries are all turns in their order."""

    def __init__(self, new_id: NewId) -> None:
        self.entries: list[Entry] = []
        self._new_id = new_id
        self._queues: dict[str, _Queue] = {}

    def add(self, turn: TurnToLearn, now: datetime) -> None:
        """Store a turn that ended."""
        self.entries.append(Entry(turn, now))
        self._wake(turn.user_id, now)

    @property
    def learnings(self) -> list[Learning]:
        """Give what all turns say, in their order."""
        return [learning_of(entry.turn) for entry in self.entries]

    # ------------------------------------------------------------ LearnOutbox

    async def claim(self, *, limit: int, lease: timedelta, now: datetime) -> Sequence[ClaimedTurn]:
        token = self._new_id()
        latest = now + 2 * max(lease, LONGEST_WAIT)
        waiting = [(q.due, user) for user, q in self._queues.items() if q.due is not None]
        ahead = sorted(pair for pair in waiting if pair[0] > latest)
        due = sorted(pair for pair in waiting if pair[0] <= now)
        claimed = []
        for _, user_id in [*ahead, *due][:limit]:
            entry = self._next(user_id)
            assert entry is not None
            entry.attempt += 1
            self._queues[user_id] = _Queue(now + lease, token)
            claimed.append(ClaimedTurn(turn=entry.turn, attempt=entry.attempt, token=token))
        return claimed

    async def delivered(self, claimed: ClaimedTurn, *, now: datetime) -> bool:
        entry = self._entry(claimed.turn.turn_id)
        if not self._holds(claimed):
            return entry is not None and entry.state == "done"
        assert entry is not None
        entry.state, entry.error, entry.has_content = "done", "", False
        self._go_on(claimed.turn.user_id, now)
        return True

    async def give_back(
        self, claimed: ClaimedTurn, *, error: str, retry_at: datetime, refund: bool
    ) -> bool:
        entry = self._entry(claimed.turn.turn_id)
        if entry is None or not self._holds(claimed):
            return False
        entry.error = error[:500]
        entry.attempt -= int(refund)
        self._queues[claimed.turn.user_id] = _Queue(retry_at)
        return True

    async def park(self, claimed: ClaimedTurn, *, error: str, now: datetime) -> bool:
        entry = self._entry(claimed.turn.turn_id)
        if entry is None or not self._holds(claimed):
            return False
        entry.state, entry.error = "parked", error[:500]
        self._go_on(claimed.turn.user_id, now)
        return True

    async def state(self) -> OutboxState:
        pending = [entry.create_time for entry in self.entries if entry.state == "pending"]
        parked = sum(entry.state == "parked" for entry in self.entries)
        return OutboxState(pending=len(pending), parked=parked, oldest=min(pending, default=None))

    async def forget(self, *, before: datetime, limit: int) -> int:
        old = [e for e in self.entries if e.state == "done" and e.create_time < before]
        gone = sorted(old, key=lambda entry: entry.create_time)[:limit]
        self.entries = [entry for entry in self.entries if entry not in gone]
        return len(gone)

    # ------------------------------------------------------------ ParkedTurns

    async def parked(self, *, limit: int) -> Sequence[ParkedTurn]:
        parked = [entry for entry in self.entries if entry.state == "parked"]
        return [
            ParkedTurn(
                user_id=entry.turn.user_id,
                conversation_id=entry.turn.conversation_id,
                turn_id=entry.turn.turn_id,
                attempt=entry.attempt,
                error=entry.error,
                create_time=entry.create_time,
            )
            for entry in sorted(parked, key=lambda entry: entry.create_time)[:limit]
        ]

    async def retry(self, turn_id: str, *, now: datetime) -> bool:
        entry = self._entry(turn_id)
        if entry is None or entry.state != "parked":
            return False
        entry.state, entry.attempt = "pending", 0
        self._wake(entry.turn.user_id, now)
        return True

    # ------------------------------------------------------------ within

    def _entry(self, turn_id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.turn.turn_id == turn_id), None)

    def _next(self, user_id: str) -> Entry | None:
        mine = (entry for entry in self.entries if entry.turn.user_id == user_id)
        return next((entry for entry in mine if entry.state == "pending"), None)

    def _holds(self, claimed: ClaimedTurn) -> bool:
        queue = self._queues.get(claimed.turn.user_id)
        return queue is not None and queue.token == claimed.token

    def _wake(self, user_id: str, now: datetime) -> None:
        queue = self._queues.setdefault(user_id, _Queue(None))
        queue.due = queue.due or now

    def _go_on(self, user_id: str, now: datetime) -> None:
        self._queues[user_id] = _Queue(now if self._next(user_id) else None)
