"""Turns in SQL: leases, events, and the closing transaction.

A turn is held by its row (lease_token, lease_until), never by a lock of the database; each call is
one short transaction. All of them may run twice: a connection lost during a commit is no error.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select, update

from agent_service.adapters.sql.closing import close_if_lost, close_turn
from agent_service.adapters.sql.opening import Holder, open_turn
from agent_service.adapters.sql.schema import turn_events, turns
from agent_service.adapters.sql.timeline import lock_conversation
from agent_service.adapters.sql.turn_rows import (
    ENDED,
    RUNNING,
    find_turn,
    hold,
    is_expired,
    lock_turn,
    store_events,
    stored_events,
)
from agent_service.domain.errors import LeaseLost, TurnNotFound
from agent_service.domain.model import TurnEvent, TurnKey
from agent_service.ports import NewId, NewTurn, TurnClosing, TurnKnown, TurnLease, TurnOpened
from database.access import Database


class SqlTurnStore:
    """A TurnStore. owner names this process for people; a lease lasts `lease` from each beat.

    on_end hears, in the event loop, of ends that are committed, so that they may be learnt from.
    """

    def __init__(
        self,
        database: Database,
        new_id: NewId,
        *,
        owner: str,
        lease: timedelta,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._database = database
        self._new_id = new_id
        self._owner = owner
        self._lease = lease
        self._on_end = on_end

    async def open(self, turn: NewTurn) -> TurnOpened | TurnKnown:
        """Keep the promise of TurnStore.open."""
        holder = Holder(owner=self._owner, token=self._new_id(), lease=self._lease)
        return await self._database.write(
            lambda connection: open_turn(connection, turn, holder), repeatable=True
        )

    async def append(self, lease: TurnLease, events: Sequence[TurnEvent]) -> None:
        """Keep the promise of TurnStore.append; events sent twice are stored once."""

        def work(connection: Connection) -> None:
            hold(connection, lease)
            store_events(connection, lease.turn_id, events)

        await self._database.write(work, repeatable=True)

    async def heartbeat(self, lease: TurnLease, now: datetime) -> bool:
        """Keep the promise of TurnStore.heartbeat."""

        def work(connection: Connection) -> bool:
            turn = hold(connection, lease)
            connection.execute(
                update(turns)
                .where(turns.c.turn_id == lease.turn_id)
                .values(lease_until=now + self._lease, heartbeat_time=now)
            )
            return bool(turn.cancel_requested)

        return await self._database.write(work, repeatable=True)

    async def close(self, lease: TurnLease, closing: TurnClosing) -> None:
        """Keep the promise of TurnStore.close; closing again under the same lease changes nothing.

        So a caller that got StoreUnavailable, and does not know what happened, may just try again.
        """

        def work(connection: Connection) -> None:
            conversation = lock_conversation(connection, lease.user_id, lease.conversation_id)
            turn = lock_turn(connection, lease.key)
            if conversation is None or turn is None or turn.lease_token != lease.token:
                raise LeaseLost(lease.turn_id)
            if turn.state == RUNNING:
                close_turn(connection, conversation, turn, closing)

        await self._database.write(work, repeatable=True)
        self._on_end()

    async def cancel(self, user_id: str, conversation_id: str, turn_id: str, now: datetime) -> bool:
        """Keep the promise of TurnStore.cancel."""
        key = TurnKey(user_id, conversation_id, turn_id)
        token = self._new_id()

        def work(connection: Connection) -> bool:
            if find_turn(connection, key) is None:
                raise TurnNotFound(turn_id)
            close_if_lost(connection, key, token=token, now=now)
            flagged = connection.execute(
                update(turns)
                .where(turns.c.turn_id == turn_id, turns.c.state == RUNNING)
                .values(cancel_requested=True)
            )
            return bool(flagged.rowcount)

        return await self._database.write(work, repeatable=True)

    async def events(
        self, user_id: str, conversation_id: str, turn_id: str, *, after_seq: int, now: datetime
    ) -> Sequence[TurnEvent]:
        """Keep the promise of TurnStore.events."""
        key = TurnKey(user_id, conversation_id, turn_id)

        def read(connection: Connection) -> Sequence[TurnEvent] | None:
            turn = find_turn(connection, key)
            if turn is None:
                raise TurnNotFound(turn_id)
            if is_expired(turn, now):
                return None
            return stored_events(connection, turn_id, after_seq=after_seq)

        found = await self._database.read(read)
        if found is not None:
            return found
        await self._close_lost(key, now)
        return await self._database.read(
            lambda connection: stored_events(connection, turn_id, after_seq=after_seq)
        )

    async def close_expired(self, now: datetime, *, limit: int) -> int:
        """Keep the promise of TurnStore.close_expired; each turn in its own transaction."""

        def find(connection: Connection) -> list[TurnKey]:
            found = connection.execute(
                select(turns.c.user_id, turns.c.conversation_id, turns.c.turn_id)
                .where(turns.c.state == RUNNING, turns.c.lease_until <= now)
                .order_by(turns.c.lease_until)
                .limit(limit)
            )
            return [TurnKey(*row) for row in found]

        keys = await self._database.read(find)
        return sum([await self._close_lost(key, now) for key in keys])

    async def forget(self, *, before: datetime, limit: int) -> int:
        """Keep the promise of TurnStore.forget."""
        old = (
            select(turns.c.turn_id)
            # A lease ends about when its turn does, and has the index.
            .where(turns.c.state == ENDED, turns.c.lease_until < before, turns.c.end_time < before)
            .order_by(turns.c.lease_until)
            .limit(limit)
        )

        def work(connection: Connection) -> int:
            names = connection.scalars(old).all()
            connection.execute(delete(turn_events).where(turn_events.c.turn_id.in_(names)))
            connection.execute(delete(turns).where(turns.c.turn_id.in_(names)))
            return len(names)

        return await self._database.write(work, repeatable=True)

    async def _close_lost(self, key: TurnKey, now: datetime) -> bool:
        token = self._new_id()
        closed = await self._database.write(
            lambda connection: close_if_lost(connection, key, token=token, now=now),
            repeatable=True,
        )
        if closed:
            self._on_end()
        return closed
