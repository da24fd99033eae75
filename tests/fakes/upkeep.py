"""Due, Forgetting and IndexAudit over the tables in memory."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta

from memory_service.domain.ingest import JobState
from memory_service.domain.model import IndexState, Memory, MemoryStatus
from memory_service.ports import IndexView, MemoryRef
from tests.fakes.memory_tables import Tables


class FakeUpkeep:
    """What upkeep asks of SQL, all three ports in one."""

    def __init__(
        self, tables: Callable[[], Tables], *, call: Callable[[str], Awaitable[None]]
    ) -> None:
        self._tables = tables
        self._call = call

    # ------------------------------------------------------------ Due

    async def users(self, *, after: str, limit: int) -> Sequence[str]:
        await self._call("users")
        return sorted(user for user in self._tables().states if user > after)[:limit]

    async def expired(self, *, now: datetime, limit: int) -> Sequence[MemoryRef]:
        await self._call("expired")
        return _refs(
            row for row in self._there() if row.expire_time is not None and row.expire_time <= now
        )[:limit]

    async def retentions(self, *, after: str, limit: int) -> Sequence[tuple[str, timedelta]]:
        await self._call("retentions")
        found = [
            (user, state.settings.retention)
            for user, state in sorted(self._tables().states.items())
            if user > after and state.settings.retention is not None
        ]
        return found[:limit]

    async def unchanged(self, user_id: str, *, since: datetime, limit: int) -> Sequence[MemoryRef]:
        await self._call("unchanged")
        return _refs(
            row for row in self._there() if row.user_id == user_id and row.update_time <= since
        )[:limit]

    async def deleted(self, *, before: datetime, limit: int) -> Sequence[MemoryRef]:
        await self._call("deleted")
        rows = sorted(self._tables().memories.values(), key=lambda row: row.update_time)
        return _refs(
            row for row in rows if row.status is MemoryStatus.DELETED and row.update_time < before
        )[:limit]

    async def erasures(self, *, before: datetime, limit: int) -> Sequence[tuple[str, str]]:
        await self._call("erasures")
        found = [
            (user, state.erasing)
            for user, state in sorted(self._tables().states.items())
            if state.erasing and state.erase_time is not None and state.erase_time < before
        ]
        return found[:limit]

    def _there(self) -> list[Memory]:
        rows = self._tables().memories.values()
        return [row for row in rows if row.status is not MemoryStatus.DELETED]

    # ------------------------------------------------------------ Forgetting

    async def requests(self, *, before: datetime, limit: int) -> int:
        await self._call("forget_requests")
        requests = self._tables().requests
        old = [key for key, (_, _, time) in requests.items() if time < before][:limit]
        for key in old:
            del requests[key]
        return len(old)

    async def jobs(self, *, before: datetime, limit: int) -> int:
        await self._call("forget_jobs")
        jobs = self._tables().jobs
        old = [
            job_id
            for job_id, row in jobs.items()
            if row.job.state is JobState.DONE and row.job.create_time < before
        ][:limit]
        for job_id in old:
            del jobs[job_id]
        return len(old)

    # ------------------------------------------------------------ IndexAudit

    async def view(self, user_id: str) -> IndexView:
        await self._call("audit")
        notes = self._tables().notes.values()
        waiting = {one.memory_id for one in notes if one.user_id == user_id and not one.reached}
        active = {
            row.memory_id
            for row in self._tables().active(user_id)
            if row.is_indexed and row.index_state is not IndexState.FAILED
        }
        return IndexView(settled=frozenset(active - waiting), waiting=frozenset(waiting))

    async def remind(self, user_id: str, memory_ids: Sequence[str], *, now: datetime) -> None:
        await self._call("remind")
        for memory_id in memory_ids:
            self._tables().mark(memory_id, user_id, now)


def _refs(rows: Iterable[Memory]) -> list[MemoryRef]:
    return [MemoryRef(row.user_id, row.memory_id) for row in rows]
