"""Transactions from async code: each in a thread, run again when trouble passes."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from database.engine import READS
from database.pool import ThreadPool
from database.transient import OutcomeUnknown, Trouble, run_again, trouble

T = TypeVar("T")


class Database:
    """A service's SQL. Raises unavailable(text), the service's own error, when it does not answer.

    threads: calls at a time, at most the engine's pool_size. Work given to it is a plain function
    of a Connection, called in a thread; it may be called several times and must not keep anything
    between. It neither commits nor waits for anything else.
    """

    def __init__(
        self, engine: Engine, *, unavailable: Callable[[str], Exception], threads: int = 8
    ) -> None:
        self.engine = engine
        self._unavailable = unavailable
        self._threads = ThreadPool("sql", threads)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run work on one snapshot; what it writes is lost."""
        return await self._threads.run(
            lambda: run_again(
                lambda: in_snapshot(self.engine, work),
                unavailable=self._unavailable,
            )
        )

    async def write(self, work: Callable[[Connection], T], *, repeatable: bool = False) -> T:
        """Run work in one transaction and commit it; an error raised by it rolls all back.

        repeatable: work does no harm when it is committed twice, so a connection lost during the
        commit is no error either.
        """
        return await self._threads.run(
            lambda: run_again(
                lambda: in_transaction(self.engine, work),
                unavailable=self._unavailable,
                repeatable=repeatable,
            )
        )

    def close(self) -> None:
        """Let go of threads and connections."""
        self._threads.close()
        self.engine.dispose()


def in_snapshot(engine: Engine, work: Callable[[Connection], T]) -> T:
    """Run work on one snapshot and roll back."""
    with engine.connect() as connection:
        return work(connection.execution_options(**{READS: True}))


def in_transaction(engine: Engine, work: Callable[[Connection], T]) -> T:
    """Run work and commit. Raises OutcomeUnknown if the connection is lost while committing."""
    with engine.connect() as connection:
        outcome = work(connection)
        try:
            connection.commit()
        except DBAPIError as error:
            if trouble(error) is Trouble.LOST:
                raise OutcomeUnknown from error
            raise
        return outcome
