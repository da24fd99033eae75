"""The relay: claims turns, hands them to the memory service, and notes what came of it."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import structlog

from agent_service.domain.errors import MemoryUnavailable, StoreUnavailable, TurnRefused
from agent_service.domain.learning import fitted, wait_after
from agent_service.ports import ClaimedTurn, Clock, LearnOutbox, LearnTarget

LETTING_GO = 2.0
"""Seconds in which a relay that ends may still give back what it holds."""
RELAY_LOST = "RELAY_LOST"
"""Error of a turn whose last attempt ended with its relay."""
RELAY_FAILED = "RELAY_FAILED"
"""Error of a turn that this program cannot hand over; its log says why."""

log = structlog.get_logger("agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """Durations in seconds. A third of the lease is for handing a turn over."""

    poll: float = 0.5
    lease: float = 30.0
    max_tries: int = 20
    batch: int = 16
    """Users whose turns are handed over side by side."""


class LearnRelay:
    """Delivers each turn at least once, a user's in order; any number may run beside each other.

    An outage is no attempt and stops the whole relay, 1 s at first and twice as long each time, up
    to 60 s; then one turn finds out whether it is over. A refusal is an attempt of its turn: that
    user waits in the same way, others do not, and after max_tries the turn is parked.
    """

    def __init__(
        self,
        *,
        outbox: LearnOutbox,
        target: LearnTarget,
        clock: Clock,
        settings: RelaySettings,
        on_lease_lost: Callable[[], object] = lambda: None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._outbox = outbox
        self._target = target
        self._clock = clock
        self._settings = settings
        self._on_lease_lost = on_lease_lost
        self._jitter = jitter
        self._turn_ended = asyncio.Event()
        self._outages = 0
        """Of the memory service, in a row: over only when it answers."""
        self._failures = 0
        """Of steps, in a row: SQL is silent, or this program is wrong."""

    def notify(self) -> None:
        """Say that a turn ended, so that the relay need not wait for its next poll."""
        self._turn_ended.set()

    async def run(self) -> None:
        """Go on until cancelled; nothing that happens in a step ends it.

        What it is handing over then is given back, and that was no attempt.
        """
        while True:
            self._turn_ended.clear()
            pause = await self._safe_step()
            if self._outages or self._failures:
                await asyncio.sleep(pause)
            elif pause:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._turn_ended.wait(), pause)

    async def _safe_step(self) -> float:
        try:
            pause = await self.step()
        except StoreUnavailable:
            log.warning("learn_relay_waits_for_store")
        except Exception:  # the top of the relay's loop
            log.exception("learn_relay_step_failed")
        else:
            self._failures = 0
            return pause
        self._failures += 1
        return wait_after(self._failures, self._jitter())

    async def step(self) -> float:
        """Hand over what is due, a turn of each user, and give the seconds until the next step."""
        settings = self._settings
        claimed = await self._outbox.claim(
            limit=1 if self._outages else settings.batch,
            lease=timedelta(seconds=settings.lease),
            now=self._clock(),
        )
        if not claimed:
            return settings.poll
        pause = wait_after(self._outages + 1, self._jitter())
        causes = await self._deliver_all(claimed, pause)
        away = sorted({cause for cause in causes if cause})
        if "" in causes:
            self._outages = 0
        if not away:
            return 0.0
        self._outages += 1
        log.warning("learn_relay_outage", causes=away, retry_in=round(pause, 1))
        return pause

    async def _deliver_all(self, claimed: Sequence[ClaimedTurn], retry_in: float) -> Sequence[str]:
        """Deliver side by side and give what _deliver gives.

        What SQL could not note is delivered once more when its lease has run out.
        """
        outcomes = await asyncio.gather(
            *(self._deliver(one, retry_in) for one in claimed), return_exceptions=True
        )
        causes = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            causes.append(outcome)
        return causes

    async def _deliver(self, claimed: ClaimedTurn, retry_in: float) -> str:
        """Hand a turn over, note what came of it, and give why nobody could be told, or ""."""
        if claimed.attempt > self._settings.max_tries:
            await self._refused(claimed, RELAY_LOST)
            return ""
        try:
            await self._target.learn(fitted(claimed.turn), within=self._settings.lease / 3)
        except MemoryUnavailable as away:
            await self._give_back(claimed, away.cause, retry_in, refund=True)
            return away.cause
        except TurnRefused as refusal:
            await self._refused(claimed, str(refusal))
        except asyncio.CancelledError:
            with suppress(TimeoutError, StoreUnavailable):
                async with asyncio.timeout(LETTING_GO):
                    await self._give_back(claimed, "", 0.0, refund=True)
            raise
        except Exception:  # a turn that cannot be handed over must not stop the others
            log.exception("turn_not_deliverable", turn_id=claimed.turn.turn_id)
            await self._refused(claimed, RELAY_FAILED)
        else:
            self._check(claimed, held=await self._outbox.delivered(claimed, now=self._clock()))
        return ""

    async def _refused(self, claimed: ClaimedTurn, error: str) -> None:
        about = {"turn_id": claimed.turn.turn_id, "attempt": claimed.attempt, "error": error}
        if claimed.attempt < self._settings.max_tries:
            retry_in = wait_after(claimed.attempt, self._jitter())
            log.warning("turn_refused", **about, retry_in=round(retry_in, 1))
            await self._give_back(claimed, error, retry_in, refund=False)
            return
        log.error("turn_parked", **about)
        held = await self._outbox.park(claimed, error=error, now=self._clock())
        self._check(claimed, held=held)

    async def _give_back(
        self, claimed: ClaimedTurn, error: str, retry_in: float, *, refund: bool
    ) -> None:
        retry_at = self._clock() + timedelta(seconds=retry_in)
        held = await self._outbox.give_back(claimed, error=error, retry_at=retry_at, refund=refund)
        self._check(claimed, held=held)

    def _check(self, claimed: ClaimedTurn, *, held: bool) -> None:
        if not held:
            log.warning("learn_lease_lost", turn_id=claimed.turn.turn_id, attempt=claimed.attempt)
            self._on_lease_lost()
