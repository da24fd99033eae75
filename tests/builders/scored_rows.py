"""The store of RECALL 7 and a short way to ask it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np

from memory_service.domain.centre import Vector
from memory_service.domain.model import Memory, Role
from memory_service.domain.relevance import Question, exact_cosines
from memory_service.domain.working_set import Change, WorkingSet
from tests.builders.memories import NOW, memory

WORKED_EXAMPLE: Sequence[tuple[str, Sequence[float]]] = (
    ("Anna: Did you find a new flat?", (0.8, 0.6, 0)),
    ("Ben: Yes, in Lyon, near the old harbour.", (0.6, 0.8, 0)),
    ("Anna: Great news!", (0, 1, 0)),
    ("User is allergic to peanuts.", (0, 0.6, 0.8)),
    ("用户不吃香菜。", (0, 0, 1)),
    ("User prefers tea over coffee.", (0.6, 0, 0.8)),
)
TURNS = 3


def vector(*numbers: float) -> Vector:
    """Give a unit vector in this direction."""
    given = np.array(numbers, np.float32)
    return np.asarray(given / np.linalg.norm(given), np.float32)


def turn(
    memory_id: str,
    content: str,
    *,
    at: float = 0,
    conversation_id: str = "c1",
    speaker: str = "",
    role: Role | None = None,
) -> Memory:
    """Build a verbatim turn, said at so many seconds."""
    return memory(
        memory_id,
        content,
        is_verbatim=True,
        conversation_id=conversation_id,
        speaker=speaker,
        role=role,
        occur_time=NOW + timedelta(seconds=at),
    )


def content(one: Memory) -> str:
    """Give the text that the worked examples search: without a date."""
    return one.content


def worked_example() -> list[Change]:
    """Build the six rows, r0 to r5."""
    return [
        (
            turn(f"r{i}", text, at=60 * i) if i < TURNS else memory(f"r{i}", text),
            vector(*direction),
        )
        for i, (text, direction) in enumerate(WORKED_EXAMPLE)
    ]


def built(rows: Sequence[Change]) -> WorkingSet:
    """Build a working set that searches the bare content."""
    return WorkingSet.build(rows, revision=1, total=len(rows), text=content)


def asked(text: str, query: Vector | None, rows: Sequence[Change]) -> Question:
    """Ask with the exact cosines of the rows."""
    if query is None:
        return Question(text)
    vectors: Mapping[str, Vector] = {one.memory_id: v for one, v in rows if v is not None}
    matrix = np.array(list(vectors.values()), np.float32)
    return Question(text, query, exact_cosines(list(vectors), matrix, query))
