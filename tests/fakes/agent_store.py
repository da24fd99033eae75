"""Turns and conversations in memory: TurnStore and ConversationStore, as the contract suite says.

Events are kept encoded, as every store keeps them: memories come back without their text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from agent_service.codec.events import decode_event, encode_event
from agent_service.domain.context import ContextReport
from agent_service.domain.errors import (
    ClientMessageIdReused,
    ConversationNotFound,
    LeaseLost,
    TurnNotFound,
    TurnRunning,
)
from agent_service.domain.learning import Spoken, TurnToLearn
from agent_service.domain.model import (
    ContextAssembled,
    Conversation,
    ConversationStatus,
    Delta,
    Failed,
    MemoryUsed,
    Role,
    Started,
    ThinkingSummary,
    TurnEvent,
)
from agent_service.domain.text import clean_text
from agent_service.ports import (
    AssistantSaid,
    ContextStats,
    DialogueMessage,
    NewId,
    NewTurn,
    StoredTimelineEvent,
    TimelineKind,
    TurnClosing,
    TurnKnown,
    TurnLease,
    TurnOpened,
    UserSaid,
)
from tests.fakes.learn_outbox import FakeLearnOutbox

NEVER = datetime.max.replace(tzinfo=UTC)
_NO_STATS = ContextStats(None, 0, 0, 0, 0, 0)


@dataclass
class _Turn:
    new: NewTurn
    token: str
    until: datetime
    events: list[bytes] = field(default_factory=list)
    cancelled: bool = False
    ended: bool = False
    end: datetime = NEVER


@dataclass
class _Conversation:
    meta: Conversation
    timeline: list[StoredTimelineEvent] = field(default_factory=list)
    messages: list[tuple[str, DialogueMessage]] = field(default_factory=list)
    running: str = ""
    stats: ContextStats = field(default=_NO_STATS)


class FakeAgentStore:
    """A TurnStore and a ConversationStore; outbox is where the ends of turns go."""

    def __init__(self, new_id: NewId, *, lease: timedelta = timedelta(seconds=10)) -> None:
        self.outbox = FakeLearnOutbox(new_id)
        self._new_id = new_id
        self._lease = lease
        self._turns: dict[str, _Turn] = {}
        self._conversations: dict[tuple[str, str], _Conversation] = {}

    # ------------------------------------------------------------ TurnStore

    async def open(self, turn: NewTurn) -> TurnOpened | TurnKnown:
        for known in self._turns.values():
            same = known.new.client_message_id == turn.client_message_id
            if same and known.new.user_id == turn.user_id:
                if known.new.digest != turn.digest:
                    raise ClientMessageIdReused(turn.client_message_id)
                if known.new.turn_id == turn.turn_id:  # sent twice, after a lost answer
                    return TurnOpened(_lease_of(known), _events(known)[0])
                return TurnKnown(known.new.conversation_id, known.new.turn_id)
        key = (turn.user_id, turn.conversation_id)
        conversation = self._conversations.get(key)
        created = conversation is None
        if conversation is None:
            conversation = self._conversations[key] = _Conversation(
                Conversation(user_id=turn.user_id, conversation_id=turn.conversation_id)
            )
        if conversation.running:
            self._close_if_expired(self._turns[conversation.running], turn.now)
        if conversation.running:
            raise TurnRunning(turn.conversation_id)
        started = TurnEvent(
            1, Started(turn.conversation_id, turn.turn_id, turn.request_id, created)
        )
        stored = _Turn(turn, self._new_id(), turn.now + self._lease, [encode_event(started)])
        self._turns[turn.turn_id] = stored
        conversation.running = turn.turn_id
        _say(conversation, turn.turn_id, UserSaid(clean_text(turn.text)), turn.now)
        return TurnOpened(_lease_of(stored), started)

    async def append(self, lease: TurnLease, events: Sequence[TurnEvent]) -> None:
        _store(self._held(lease), events)

    async def heartbeat(self, lease: TurnLease, now: datetime) -> bool:
        turn = self._held(lease)
        turn.until = now + self._lease
        return turn.cancelled

    async def close(self, lease: TurnLease, closing: TurnClosing) -> None:
        known = self._turns.get(lease.turn_id)
        if known is not None and known.ended and known.token == lease.token:
            return  # sent twice, after a lost answer
        self._close(self._held(lease), closing)

    async def cancel(self, user_id: str, conversation_id: str, turn_id: str, now: datetime) -> bool:
        turn = self._turn(user_id, conversation_id, turn_id)
        self._close_if_expired(turn, now)
        turn.cancelled = turn.cancelled or not turn.ended
        return not turn.ended

    async def events(
        self, user_id: str, conversation_id: str, turn_id: str, *, after_seq: int, now: datetime
    ) -> Sequence[TurnEvent]:
        turn = self._turn(user_id, conversation_id, turn_id)
        self._close_if_expired(turn, now)
        return [event for event in _events(turn) if event.seq > after_seq]

    async def close_expired(self, now: datetime, *, limit: int) -> int:
        expired = [turn for turn in self._turns.values() if not turn.ended and turn.until <= now]
        for turn in sorted(expired, key=lambda turn: turn.until)[:limit]:
            self._close_if_expired(turn, now)
        return min(len(expired), limit)

    async def forget(self, *, before: datetime, limit: int) -> int:
        old = [name for name, turn in self._turns.items() if turn.ended and turn.end < before]
        gone = sorted(old, key=lambda name: self._turns[name].until)[:limit]
        for name in gone:
            del self._turns[name]
        return len(gone)

    # ------------------------------------------------------------ ConversationStore

    async def meta(self, user_id: str, conversation_id: str) -> Conversation:
        return self._conversation(user_id, conversation_id).meta

    async def page(
        self,
        user_id: str,
        *,
        status: ConversationStatus | None,
        before: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[Conversation]:
        mine = [
            conversation.meta
            for (owner, _), conversation in self._conversations.items()
            if owner == user_id and status in (None, conversation.meta.status)
        ]
        older = [
            meta
            for meta in mine
            if before is None or _place(meta) < (before[0], before[1].encode())
        ]
        return sorted(older, key=_place, reverse=True)[:limit]

    async def timeline(
        self,
        user_id: str,
        conversation_id: str,
        *,
        after: int | None,
        before: int | None,
        limit: int,
    ) -> Sequence[StoredTimelineEvent]:
        timeline = self._conversation(user_id, conversation_id).timeline
        if after is not None:
            return [event for event in timeline if event.seq > after][:limit]
        return [event for event in timeline if before is None or event.seq < before][-limit:]

    async def recent_messages(
        self, user_id: str, conversation_id: str, *, before_turn: str, limit: int
    ) -> Sequence[DialogueMessage]:
        messages = self._conversation(user_id, conversation_id).messages
        turns = [turn_id for turn_id, _ in messages]
        end = turns.index(before_turn) if before_turn in turns else len(turns)
        return [message for _, message in messages[:end]][-limit:]

    async def context_stats(self, user_id: str, conversation_id: str) -> ContextStats:
        return self._conversation(user_id, conversation_id).stats

    async def set_title_if_empty(self, user_id: str, conversation_id: str, title: str) -> None:
        conversation = self._conversation(user_id, conversation_id)
        kept = conversation.meta.title or clean_text(title)
        conversation.meta = replace(conversation.meta, title=kept)

    # ------------------------------------------------------------ within

    def _conversation(self, user_id: str, conversation_id: str) -> _Conversation:
        try:
            return self._conversations[user_id, conversation_id]
        except KeyError:
            raise ConversationNotFound(conversation_id) from None

    def _turn(self, user_id: str, conversation_id: str, turn_id: str) -> _Turn:
        turn = self._turns.get(turn_id)
        if turn is None or (turn.new.user_id, turn.new.conversation_id) != (
            user_id,
            conversation_id,
        ):
            raise TurnNotFound(turn_id)
        return turn

    def _held(self, lease: TurnLease) -> _Turn:
        turn = self._turns.get(lease.turn_id)
        if turn is None or turn.ended or turn.token != lease.token:
            raise LeaseLost(lease.turn_id)
        return turn

    def _close_if_expired(self, turn: _Turn, now: datetime) -> None:
        if turn.ended or turn.until > now:
            return
        turn.token = self._new_id()
        events = _events(turn)
        reports = [e.event.report for e in events if isinstance(e.event, ContextAssembled)]
        lost = TurnEvent(events[-1].seq + 1, Failed(LeaseLost.reason, "The turn was interrupted."))
        self._close(
            turn,
            TurnClosing(
                events=[lost],
                answer="".join(e.event.text for e in events if isinstance(e.event, Delta)),
                incomplete=True,
                report=reports[-1] if reports else None,
                now=now,
            ),
        )

    def _close(self, turn: _Turn, closing: TurnClosing) -> None:
        new = turn.new
        conversation = self._conversations[new.user_id, new.conversation_id]
        _store(turn, closing.events)
        turn.ended, turn.end = True, closing.now
        conversation.running = ""
        answer = clean_text(closing.answer)
        for kind in _timeline_of(_events(turn), answer, incomplete=closing.incomplete):
            _say(conversation, new.turn_id, kind, closing.now)
        if closing.report is not None:
            conversation.stats = _add(conversation.stats, closing.report)
        self.outbox.add(_to_learn(new, answer, closing.now), closing.now)


def _to_learn(new: NewTurn, answer: str, now: datetime) -> TurnToLearn:
    spoken = [(Role.USER, clean_text(new.text), new.now)]
    if answer.strip():
        spoken.append((Role.ASSISTANT, answer, now))
    return TurnToLearn(
        user_id=new.user_id,
        conversation_id=new.conversation_id,
        turn_id=new.turn_id,
        request_id=new.turn_id,
        messages=[
            Spoken(role=role, content=text, create_time=time, timezone=new.timezone)
            for role, text, time in spoken
        ],
    )


def _lease_of(turn: _Turn) -> TurnLease:
    return TurnLease(
        user_id=turn.new.user_id,
        conversation_id=turn.new.conversation_id,
        turn_id=turn.new.turn_id,
        token=turn.token,
    )


def _events(turn: _Turn) -> list[TurnEvent]:
    decoded = (decode_event(stored) for stored in turn.events)
    return [event for event in decoded if event is not None]


def _store(turn: _Turn, events: Sequence[TurnEvent]) -> None:
    # What is stored already was sent twice, after a lost answer.
    turn.events.extend(encode_event(event) for event in events if event.seq > len(turn.events))


def _timeline_of(
    events: Sequence[TurnEvent], answer: str, *, incomplete: bool
) -> list[TimelineKind]:
    kept: list[TimelineKind] = [
        event.event
        for event in events
        if isinstance(event.event, MemoryUsed | ContextAssembled | ThinkingSummary)
    ]
    if answer.strip():
        kept.append(AssistantSaid(answer, incomplete))
    kept.extend(event.event for event in events if isinstance(event.event, Failed))
    return kept


def _say(conversation: _Conversation, turn_id: str, kind: TimelineKind, now: datetime) -> None:
    seq = len(conversation.timeline) + 1
    conversation.timeline.append(StoredTimelineEvent(seq, turn_id, now, kind))
    if isinstance(kind, UserSaid | AssistantSaid):
        incomplete = isinstance(kind, AssistantSaid) and kind.incomplete
        role = Role.USER if isinstance(kind, UserSaid) else Role.ASSISTANT
        message = DialogueMessage(role, kind.text, incomplete, now)
        conversation.messages.append((turn_id, message))
        meta = conversation.meta
        conversation.meta = replace(
            meta,
            message_count=meta.message_count + 1,
            last_message_time=max(now, meta.last_message_time or now),
        )


def _add(stats: ContextStats, report: ContextReport) -> ContextStats:
    return ContextStats(
        last_report=report,
        turns=stats.turns + 1,
        total_tokens=stats.total_tokens + report.total_tokens,
        actual_prompt_tokens=stats.actual_prompt_tokens + (report.actual_prompt_tokens or 0),
        dropped=stats.dropped + report.dropped,
        truncated=stats.truncated + report.truncated,
    )


def _place(meta: Conversation) -> tuple[datetime, bytes]:
    assert meta.last_message_time is not None
    return meta.last_message_time, meta.conversation_id.encode()
