"""The turns of one process: begin, follow, resume and cancel them."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from agent_service.chat.replay import replay
from agent_service.chat.reply import Reply
from agent_service.chat.running import CANCELLED, SHUTTING_DOWN, Explain, Pace, RunningTurn
from agent_service.domain.errors import (
    ConversationNotFound,
    DomainError,
    StoreUnavailable,
    TurnRunning,
)
from agent_service.domain.model import ChatCommand, Done, TurnEvent, TurnKey
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Seconds, the length of a title, see AgentSettings; and who puts failures into words."""

    pace: Pace
    explain: Explain
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
        self._ended = False

    async def run(self, command: ChatCommand) -> AsyncGenerator[TurnEvent, None]:
        """Run a turn, or give the events of the one that the client_message_id stands for.

        Closing the iterator early is what a client does that leaves: the turn is cancelled after
        the grace, unless somebody else follows it by then, and what was said is kept.
        """
        opened = await self._open(command)
        if isinstance(opened, TurnKnown):
            known = self.resume(command.user_id, opened.conversation_id, opened.turn_id, 0)
            async with aclosing(known) as events:
                async for event in events:
                    yield event
            return
        turn = self._start(command, opened)
        try:
            yield opened.started
            async with aclosing(turn.events()) as events:
                async for event in events:
                    yield event
        finally:
            turn.leave(self._settings.resume_grace)

    async def resume(
        self, user_id: str, conversation_id: str, turn_id: str, after_seq: int
    ) -> AsyncGenerator[TurnEvent, None]:
        """Give the events above after_seq until the turn is over, whichever process runs it.

        A turn of this process goes on for whoever follows it here. Raises TurnNotFound,
        SeqNotReached.
        """
        key = TurnKey(user_id, conversation_id, turn_id)
        stored = replay(
            self._store,
            self._clock,
            key,
            after_seq=after_seq,
            poll=self._settings.resume_poll,
        )
        with self._following(key):
            async with aclosing(stored) as events:
                async for event in events:
                    yield event

    async def cancel(self, user_id: str, conversation_id: str, turn_id: str) -> bool:
        """Stop a running turn, here at once, elsewhere at its next sign of life."""
        running = await self._store.cancel(user_id, conversation_id, turn_id, self._clock())
        turn = self._running.get(turn_id)
        if running and turn is not None:
            turn.end(CANCELLED)
        return running

    def end_all(self, after: float) -> None:
        """End the turns that run in so many seconds, or begin later, as the server shuts down."""

        def end() -> None:
            self._ended = True
            for turn in list(self._running.values()):
                turn.end(SHUTTING_DOWN)

        asyncio.get_running_loop().call_later(after, end)

    async def settle(self, *, within: float | None = None) -> None:
        """Wait until every turn of this process is closed, at most within seconds.

        A turn that is not closed by then, because SQL is silent, is closed by whoever meets its
        lease when it has run out.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
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
            opening = asyncio.create_task(self._store.open(replace(turn, now=self._clock())))
            try:
                return await asyncio.shield(opening)
            except TurnRunning:
                if loop.time() >= until:
                    raise
            except asyncio.CancelledError:
                self._keep(self._abandon(command, opening))
                raise
            await asyncio.sleep(BUSY_PAUSE)

    async def _abandon(
        self, command: ChatCommand, opening: "asyncio.Task[TurnOpened | TurnKnown]"
    ) -> None:
        """Give a turn its end whose client left while it was being stored."""
        try:
            opened = await opening
        except DomainError:
            return
        if isinstance(opened, TurnOpened):
            self._start(command, opened).leave(self._settings.resume_grace)

    def _start(self, command: ChatCommand, opened: TurnOpened) -> RunningTurn:
        turn = RunningTurn(
            self._store,
            opened.lease,
            opened.started,
            self._clock,
            self._settings.pace,
            self._settings.explain,
        )
        self._running[opened.lease.turn_id] = turn
        if self._ended:
            turn.end(SHUTTING_DOWN)
        self._keep(self._run(command, turn))
        return turn

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextmanager
    def _following(self, key: TurnKey) -> Iterator[None]:
        """Keep a turn of this process running as long as the block does."""
        turn = self._running.get(key.turn_id)
        if turn is None or turn.lease.key != key:
            yield
            return
        turn.follow()
        try:
            yield
        finally:
            turn.unfollow(self._settings.resume_grace)

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
        except (StoreUnavailable, ConversationNotFound):
            return  # the next turn tries again, if there is one
