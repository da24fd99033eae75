"""One running turn: numbers its events, stores them, hands them on, and closes the turn."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog

from agent_service.domain.context import ContextReport
from agent_service.domain.errors import DomainError, LeaseLost, StoreUnavailable
from agent_service.domain.model import (
    ContextAssembled,
    Delta,
    Done,
    Event,
    Failed,
    TurnEvent,
)
from agent_service.ports import Clock, TurnClosing, TurnLease, TurnStore

log = structlog.get_logger("agent")

CANCELLED = Done("cancelled", incomplete=True)
SHUTTING_DOWN = Failed("SHUTTING_DOWN", "this server is shutting down")
LOST = Failed("TURN_LOST", "the turn was taken over by another process")
NOT_STORED = Failed("STORE_UNAVAILABLE", "the answer could not be stored")
INTERNAL = Failed("INTERNAL", "the turn failed inside the server")
CLOSE_TRIES = 5


Explain = Callable[[DomainError], Failed]
"""Says to those who follow a turn why it failed, in words that are safe to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds between signs of life, between writes of events, and after a store was away.

    queue is how many events may wait for the reader.
    """

    heartbeat: float
    event_batch: float
    store_pause: float = 0.5
    queue: int = 64


class RunningTurn:
    """A turn whose lease is ours.

    Its work runs in a task of its own, so that a reader who leaves does not take the closing
    transaction along. An event is handed on once it is stored, so that its seq stands for it
    whatever crashes. Few events may wait for the reader: a slow one slows the model.
    """

    def __init__(
        self,
        store: TurnStore,
        lease: TurnLease,
        started: TurnEvent,
        clock: Clock,
        pace: Pace,
        explain: Explain,
    ) -> None:
        self.lease = lease
        self._store = store
        self._clock = clock
        self._pace = pace
        self._explain = explain
        self._seq = started.seq
        self._handed_on = started.seq
        self._unstored: list[TurnEvent] = []
        self._fresh = asyncio.Event()
        self._answer: list[str] = []
        self._report: ContextReport | None = None
        self._queue: asyncio.Queue[TurnEvent] = asyncio.Queue()
        self._room = asyncio.Semaphore(pace.queue)
        self._has_reader = True
        self._followers = 1
        self._grace: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[Done | Failed] | None = None
        self._ending: Done | Failed | None = None

    async def run(self, events: AsyncGenerator[Event, None]) -> Done | Failed:
        """Follow the events to their end, however it comes, and give the last one as stored."""
        self._work = asyncio.create_task(self._follow(events))
        if self._ending is not None:  # ended before it began
            self._work.cancel()
        beating = asyncio.create_task(self._beat())
        storing = asyncio.create_task(self._keep_storing())
        last: Done | Failed = INTERNAL
        try:
            await asyncio.wait([self._work])
            storing.cancel()
            await asyncio.wait([storing])
            cut = self._work.cancelled()
            ending = (self._ending or CANCELLED) if cut else self._work.result()
            last = ending if ending is LOST else await self._close(ending)
        finally:
            beating.cancel()
            storing.cancel()
            self._queue.put_nowait(TurnEvent(self._handed_on + 1, last))
        return last

    async def events(self) -> AsyncGenerator[TurnEvent, None]:
        """Give the events after started as they come, the last one included."""
        while True:
            event = await self._queue.get()
            self._room.release()
            yield event
            if event.last:
                return

    def end(self, ending: Done | Failed) -> None:
        """Stop the work, close the model call, and let the turn end with that event.

        The first ending counts: a second one must not disturb the closing of the model call.
        """
        if self._ending is not None:
            return
        self._ending = ending
        if self._work is not None:
            self._work.cancel()

    def leave(self, grace: float) -> None:
        """Go on without the reader of events(); he was a follower too."""
        self._has_reader = False
        self._room.release()
        self.unfollow(grace)

    def follow(self) -> None:
        """Keep the turn running for one more who reads what is stored."""
        self._followers += 1
        if self._grace is not None:
            self._grace.cancel()

    def unfollow(self, grace: float) -> None:
        """Let one go; without any the turn ends as cancelled after so many seconds."""
        self._followers -= 1
        if self._followers:
            return
        if grace > 0:
            self._grace = asyncio.get_running_loop().call_later(grace, self.end, CANCELLED)
        else:
            self.end(CANCELLED)

    async def _follow(self, events: AsyncGenerator[Event, None]) -> Done | Failed:
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, Done | Failed):
                        return event
                    await self._emit(event)
        except DomainError as error:
            return self._explain(error)
        except Exception:  # the last wall before a turn that would stay open
            log.exception("turn_failed", turn_id=self.lease.turn_id)
        return INTERNAL

    async def _emit(self, event: Event) -> None:
        if self._has_reader:
            await self._room.acquire()
        if isinstance(event, Delta):
            self._answer.append(event.text)
        elif isinstance(event, ContextAssembled):
            self._report = event.report
        self._seq += 1
        self._unstored.append(TurnEvent(self._seq, event))
        self._fresh.set()

    def _hand_on(self, stored: int) -> None:
        """Give the first so many events to the reader, if there is one."""
        events = self._unstored[:stored]
        del self._unstored[:stored]
        for event in events:
            self._handed_on = event.seq
            if self._has_reader:
                self._queue.put_nowait(event)

    async def _keep_storing(self) -> None:
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            batch = list(self._unstored)
            try:
                await self._store.append(self.lease, batch)
            except StoreUnavailable:  # they stay, for the next batch or the end
                self._fresh.set()
                await asyncio.sleep(self._pace.store_pause)
            except LeaseLost:
                return self.end(LOST)
            else:
                self._hand_on(len(batch))
                await asyncio.sleep(self._pace.event_batch)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._pace.heartbeat)
            try:
                cancelled = await self._store.heartbeat(self.lease, self._clock())
            except StoreUnavailable:
                continue  # the lease lasts several beats
            except LeaseLost:
                return self.end(LOST)
            if cancelled:
                return self.end(CANCELLED)

    async def _close(self, ending: Done | Failed) -> Done | Failed:
        """Store the end; told to the reader only after that. What cannot be stored is said."""
        closing = TurnClosing(
            events=[*self._unstored, TurnEvent(self._seq + 1, ending)],
            answer="".join(self._answer),
            incomplete=isinstance(ending, Failed) or ending.incomplete,
            report=self._final_report(ending),
            now=self._clock(),
        )
        for _ in range(CLOSE_TRIES):
            try:
                await self._store.close(self.lease, closing)
            except StoreUnavailable:
                await asyncio.sleep(self._pace.store_pause)
            except LeaseLost:
                return LOST
            else:
                self._hand_on(len(self._unstored))
                return ending
        log.error("turn_not_stored", turn_id=self.lease.turn_id)
        return NOT_STORED

    def _final_report(self, ending: Done | Failed) -> ContextReport | None:
        if self._report is None or isinstance(ending, Failed):
            return self._report
        return replace(self._report, actual_prompt_tokens=ending.actual_prompt_tokens)
