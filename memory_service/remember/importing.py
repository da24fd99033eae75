"""Storing what an export gave."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from memory_service.domain.change import USER, Change
from memory_service.domain.duplicates import united
from memory_service.domain.errors import DomainError, MemoryIdTaken
from memory_service.domain.model import Memory, MemoryStatus, Operation
from memory_service.domain.transfer import Imported, brought_back, moved
from memory_service.domain.write import Outcome, Refused, Stored, operation_of
from memory_service.ports import Clock, MemoryWriter, NewId, RequestKey, Transaction, Vector
from memory_service.remember.embedding import Embedding

CHUNK = 50
"""Memories in a transaction. Request keys depend on it, as those of a batch do."""
IMPORT = "import"
_RPC = "ImportMemories"


@dataclass(frozen=True, slots=True)
class Item:
    """One memory to import, or what is wrong with it, and a digest of what was sent."""

    memory: Imported | DomainError
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAnswer:
    """How an import is answered.

    part makes the answer about some items, by their places; join makes one of two such answers,
    about earlier and later items. empty is the answer about none.
    """

    empty: bytes
    part: Callable[[Mapping[int, Outcome]], bytes]
    join: Callable[[bytes, bytes], bytes]


class Import:
    """Stores memories of one user as they are, whatever the user's settings allow.

    What settings forbid is hidden from Retrieve; an import that left it out would lose what the
    user had stored.
    """

    def __init__(
        self, writer: MemoryWriter, embedding: Embedding, *, clock: Clock, new_id: NewId
    ) -> None:
        self._writer = writer
        self._embedding = embedding
        self._clock = clock
        self._new_id = new_id

    async def run(
        self, user_id: str, request_id: str, items: AsyncIterator[Item], answer: ImportAnswer
    ) -> bytes:
        """Store the items in chunks, each a transaction that happens once.

        The same request goes on where it broke off; once it was answered, it stores nothing more.
        Raises RequestIdReused when it had other items: before any is stored if it was answered, at
        the first chunk that differs if it was not.
        """
        is_over = await self._writer.answered(user_id, request_id)
        whole, kept, place = hashlib.sha256(), answer.empty, 0
        async for chunk in _chunks(items):
            digest = hashlib.sha256(b"".join(item.digest for item in chunk)).digest()
            whole.update(digest)
            if not is_over:
                key = RequestKey(request_id, _RPC, digest).part(place)
                outcomes = {place + n: item.memory for n, item in enumerate(chunk)}
                kept = answer.join(kept, await self._store(user_id, outcomes, key, answer))
            place += len(chunk)
        key = RequestKey(request_id, _RPC, whole.digest())
        return await self._writer.once(user_id, key, lambda _: kept)

    async def _store(
        self,
        user_id: str,
        items: Mapping[int, Imported | DomainError],
        key: RequestKey,
        answer: ImportAnswer,
    ) -> bytes:
        now = self._clock()
        memories = {
            place: item.memory(self._new_id(), now)
            for place, item in items.items()
            if isinstance(item, Imported)
        }
        active = [place for place, row in memories.items() if row.status is MemoryStatus.ACTIVE]
        vectors = await self._embedding.vectors([memories[place] for place in active])
        embedded = dict(zip(active, vectors, strict=True))

        def work(tx: Transaction) -> bytes:
            outcomes: dict[int, Outcome] = {
                place: Refused(item)
                if isinstance(item, DomainError)
                else take(tx, memories[place], embedded.get(place), self._embedding.fingerprint)
                for place, item in items.items()
            }
            return answer.part(outcomes)

        return await self._writer.once(user_id, key, work)


def take(tx: Transaction, memory: Memory, vector: Vector | None, fingerprint: str) -> Stored:
    """Store a memory under its id, or under another one if that is another user's.

    If the user has it already, the later of the two stays; if another active memory says the same,
    that one is refreshed.
    """
    own = tx.get(memory.memory_id)
    elsewhere = tx.get(moved(memory).memory_id) if own is None else None
    if elsewhere is not None:
        own, memory = elsewhere, moved(memory)
    if memory.status is MemoryStatus.ACTIVE:
        equal = tx.find_active(memory)
        if equal is not None and (own is None or equal.memory_id != own.memory_id):
            return Stored(_put(tx, equal, united(equal, memory), None, ""), created=False)
    if own is not None:
        after = brought_back(own, memory)
        return Stored(_put(tx, own, after, vector, fingerprint), created=False)
    try:
        stored = tx.put(_change(None, memory), vector, fingerprint)
    except MemoryIdTaken:
        stored = tx.put(_change(None, moved(memory)), vector, fingerprint)
    return Stored(stored, created=True)


def _put(
    tx: Transaction, before: Memory, after: Memory, vector: Vector | None, fingerprint: str
) -> Memory:
    return before if after is before else tx.put(_change(before, after), vector, fingerprint)


def _change(before: Memory | None, after: Memory) -> Change:
    operation = Operation.CREATE if before is None else operation_of(before, after)
    return Change(operation=operation, actor=USER, reason=IMPORT, before=before, after=after)


async def _chunks(items: AsyncIterator[Item]) -> AsyncIterator[list[Item]]:
    chunk: list[Item] = []
    async for item in items:
        chunk.append(item)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
