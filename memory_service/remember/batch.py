"""Writing many memories by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory_service.domain.errors import AnswerTooLarge, DomainError, MemoryNotAllowed
from memory_service.domain.model import Memory
from memory_service.domain.write import NewMemory, Outcome, Refused
from memory_service.ports import Clock, MemoryWriter, NewId, RequestKey, Transaction, Vector
from memory_service.remember.embedding import Embedding
from memory_service.remember.steps import store

CHUNK = 50
"""Memories in a transaction. Request keys depend on it: a batch that is sent again over an update
of the service must be cut at the same places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswer:
    """How a batch is answered.

    encode makes the answer about some items, by their places in the request; size gives the bytes
    that an outcome takes there, never above largest. most bounds all answers to one batch together.
    """

    encode: Callable[[Mapping[int, Outcome]], bytes]
    size: Callable[[Outcome], int]
    largest: int
    most: int


class RememberMany:
    """Stores many memories of one user; each has its own outcome."""

    def __init__(
        self,
        writer: MemoryWriter,
        embedding: Embedding,
        *,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._writer = writer
        self._embedding = embedding
        self._clock = clock
        self._new_id = new_id

    async def create(
        self,
        user_id: str,
        items: Sequence[NewMemory | DomainError],
        key: RequestKey,
        answer: BatchAnswer,
    ) -> Sequence[bytes]:
        """Store what is not refused yet, in chunks, each with an answer of its own.

        The first chunk has the request's key and the others have keys made from it, so the same
        request goes on where the first one ended. Once the answer might outgrow its bounds, further
        items are refused with AnswerTooLarge.
        """
        answers: list[bytes] = []
        for first in range(0, len(items), CHUNK):
            fitting = replace(answer, most=answer.most - sum(map(len, answers)))
            chunk = dict(enumerate(items[first : first + CHUNK], first))
            part = key.part(first) if first else key
            answers.append(await self._chunk(user_id, chunk, part, fitting))
        return answers

    async def _chunk(
        self,
        user_id: str,
        items: Mapping[int, NewMemory | DomainError],
        key: RequestKey,
        answer: BatchAnswer,
    ) -> bytes:
        now = self._clock()
        memories = {
            place: item.memory(self._new_id(), now)
            for place, item in items.items()
            if isinstance(item, NewMemory)
        }
        vectors = await self._embedding.vectors(list(memories.values()))
        embedded = dict(zip(memories, vectors, strict=True))

        def work(tx: Transaction) -> bytes:
            outcomes: dict[int, Outcome] = {}
            room = answer.most
            for place, item in items.items():
                if isinstance(item, DomainError):
                    outcomes[place] = Refused(item)
                elif room < answer.largest:
                    outcomes[place] = Refused(AnswerTooLarge("send it in another batch"))
                else:
                    outcomes[place] = self._try_store(tx, memories[place], embedded[place])
                room -= answer.size(outcomes[place])
            return answer.encode(outcomes)

        return await self._writer.once(user_id, key, work)

    def _try_store(self, tx: Transaction, memory: Memory, vector: Vector | None) -> Outcome:
        try:
            return store(tx, memory, vector, self._embedding.fingerprint)
        except MemoryNotAllowed as error:
            return Refused(error)
