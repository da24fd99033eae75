"""Storing turns to learn from, and looking at what became of them."""

from collections.abc import Callable, Sequence

from memory_service.domain.errors import JobNotFound
from memory_service.domain.ingest import Job, Turn
from memory_service.ports import (
    Clock,
    JobFilter,
    JobReader,
    MemoryWriter,
    NewId,
    RequestKey,
    Transaction,
)


class Jobs:
    """A user's jobs. on_stored hears that there is something to do for a worker."""

    def __init__(
        self,
        reader: JobReader,
        writer: MemoryWriter,
        *,
        clock: Clock,
        new_id: NewId,
        on_stored: Callable[[], object] = lambda: None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._new_id = new_id
        self._on_stored = on_stored

    async def ingest(self, turn: Turn, key: RequestKey, encode: Callable[[Job], bytes]) -> bytes:
        """Store a job that learns from a turn; encode makes the answer to keep.

        It is stored whatever the settings say: the worker ends it then.
        """
        job_id, now = self._new_id(), self._clock()

        def work(tx: Transaction) -> bytes:
            return encode(tx.jobs.add(job_id, turn, key.request_id, now))

        answer = await self._writer.once(turn.user_id, key, work)
        self._on_stored()
        return answer

    async def get(self, user_id: str, job_id: str) -> Job:
        """Give a job. Raises JobNotFound."""
        job = await self._reader.get(user_id, job_id)
        if job is None:
            raise JobNotFound
        return job

    async def page(
        self, user_id: str, wanted: JobFilter, *, before: int, size: int
    ) -> Sequence[Job]:
        """Give a page, newest first, and one job more unless it is the last page."""
        return await self._reader.page(user_id, wanted, before=before, limit=size + 1)

    async def retry(
        self, user_id: str, job_id: str, key: RequestKey, encode: Callable[[Job], bytes]
    ) -> bytes:
        """Queue a parked job again, attempts at 0. Raises JobNotFound and JobNotParked."""
        now = self._clock()

        def work(tx: Transaction) -> bytes:
            return encode(tx.jobs.requeue(job_id, now))

        answer = await self._writer.once(user_id, key, work)
        self._on_stored()
        return answer
