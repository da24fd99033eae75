"""The turns of one process: begin, follow, resume and cancel them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from agent_service.chat.reply import Reply
from agent_service.chat.running import CANCELLED, SHUTTING_DOWN, Pace, RunningTurn
from agent_service.domain.errors import SeqNotReached, StoreUnavailable, TurnRunning
from agent_service.domain.model import ChatCommand, Done, TurnEvent
from agent_service.domain.title import title_of
from agent_service.ports import (
    Clock,
    ConversationStore,
    NewId,
    NewTurn,
    TurnKnown,
    TurnOpened,
    TurnStore,
)

BUSY_PAUSE = 0.1
UNSTORED_POLLS = 10
"""Looks at a running turn for an event that was sent and may not be stored yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Seconds, and the length of a title; see AgentSettings."""

    pace: Pace
    busy_wait: float
    resume_grace: float
    resume_poll: float
    title_characters: int


class ChatTurns:
    """Runs turns. Each turn's work is a task of its own that outlives its reader."""

    def __init__(
        self,
        store: TurnStore,
        conversations: ConversationStore,
        reply: Reply,
        settings: TurnSettings,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._store = store
        self._conversations = conversations
        self._reply = reply
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._running: dict[str, RunningTurn] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, command: ChatCommand) -> AsyncIterator[TurnEvent]:
        """Run a turn, or give the events of the one that the client_message_id stands for.

        Closing the iterator early is what a client does that leaves: the turn is cancelled after
        the grace, and what was said is kept.
        """
        opened = await self._open(command)
        if isinstance(opened, TurnKnown):
            known = self.resume(command.user_id, opened.conversation_id, opened.turn_id, 0)
            async for event in known:
                yield event
            return
        turn = self._start(command, opened)
        try:
            yield opened.started
            async for event in turn.events():
                yield event
        finally:
            turn.leave(self._settings.resume_grace)

    async def resume(
        self, user_id: str, conversation_id: str, turn_id: str, after_seq: int
    ) -> AsyncIterator[TurnEvent]:
        """Give the events above after_seq until the turn is over, whichever process runs it.

        Raises TurnNotFound, SeqNotReached.
        """
        seen = after_seq
        unstored_polls = UNSTORED_POLLS if after_seq else 0
        while True:
            # one event back: it tells whether after_seq was ever reached
            found = await self._store.events(
                user_id, conversation_id, turn_id, after_seq=max(seen - 1, 0), now=self._clock()
            )
            if found and found[0].seq == seen:
                unstored_polls = 0
            elif seen == after_seq and after_seq:
                unstored_polls -= 1
                if unstored_polls <= 0 or await self._is_over(user_id, conversation_id, turn_id):
                    raise SeqNotReached(str(after_seq))
            for event in found:
                if event.seq > seen:
                    seen = event.seq
                    yield event
            if found and found[-1].last:
                return
            await asyncio.sleep(self._settings.resume_poll)

    async def cancel(self, user_id: str, conversation_id: str, turn_id: str) -> bool:
        """Stop a running turn, here at once, elsewhere at its next sign of life."""
        running = await self._store.cancel(user_id, conversation_id, turn_id, self._clock())
        turn = self._running.get(turn_id)
        if running and turn is not None:
            turn.end(CANCELLED)
        return running

    def end_all(self, after: float) -> None:
        """End the turns that still run in so many seconds, as the server shuts down."""

        def end() -> None:
            for turn in list(self._running.values()):
                turn.end(SHUTTING_DOWN)

        asyncio.get_running_loop().call_later(after, end)

    async def settle(self) -> None:
        """Wait until every turn of this process is closed."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _open(self, command: ChatCommand) -> TurnOpened | TurnKnown:
        turn = NewTurn(
            user_id=command.user_id,
            conversation_id=command.conversation_id or self._new_id(),
            conversation_is_new=not command.conversation_id,
            client_message_id=command.client_message_id,
            digest=command.digest,
            turn_id=self._new_id(),
            request_id=command.request_id,
            text=command.message,
            timezone=command.timezone,
            now=self._clock(),
        )
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.busy_wait
        while True:
            try:
                return await self._store.open(turn)
            except TurnRunning:
                if loop.time() >= until:
                    raise
            await asyncio.sleep(BUSY_PAUSE)

    def _start(self, command: ChatCommand, opened: TurnOpened) -> RunningTurn:
        turn = RunningTurn(
            self._store, opened.lease, opened.started, self._clock, self._settings.pace
        )
        self._running[opened.lease.turn_id] = turn
        task = asyncio.create_task(self._run(command, turn))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return turn

    async def _run(self, command: ChatCommand, turn: RunningTurn) -> None:
        lease = turn.lease
        try:
            last = await turn.run(
                self._reply.events(
                    command, conversation_id=lease.conversation_id, turn_id=lease.turn_id
                )
            )
        finally:
            del self._running[lease.turn_id]
        if isinstance(last, Done):
            await self._name(command, lease.conversation_id)

    async def _name(self, command: ChatCommand, conversation_id: str) -> None:
        title = title_of(command.message, characters=self._settings.title_characters)
        try:
            await self._conversations.set_title_if_empty(command.user_id, conversation_id, title)
        except StoreUnavailable:
            return  # the next turn tries again

    async def _is_over(self, user_id: str, conversation_id: str, turn_id: str) -> bool:
        events = await self._store.events(
            user_id, conversation_id, turn_id, after_seq=0, now=self._clock()
        )
        return bool(events) and events[-1].last
