"""What the turns of an assistant are worth to those of its user, in this process.

    python -m benchmarks.verbatim PATH…        dialogues, as benchmarks.recall takes them

Each speaker of a dialogue is taken for the assistant once, and only questions are asked that the
other one answers. With vectors in the index, by words alone (as the service does), not kept at all.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.datasets import Store, load
from benchmarks.figures import figures, mean, table
from memory_service.adapters.embedder_use import UseEmbedder
from memory_service.domain.model import Memory, MemoryType, Role
from memory_service.domain.relevance import SEMANTIC_LIMIT, Question, exact_cosines
from memory_service.domain.text import indexed_text
from memory_service.domain.working_set import WorkingSet
from memory_service.domain.write import NewMemory
from memory_service.ports import Vector
from rpc.ids import utc_now

SHOWN = ("R@5", "R@10", "MRR")
Figures = list[dict[str, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and give its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verbatim", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="dialogues, files or folders")
    stores = [store for store in load(parser.parse_args(arguments).paths) if _is_dialogue(store)]
    if not stores:
        sys.stderr.write("no dialogue found below the paths\n")
        return 2
    measured = asyncio.run(measure(stores))
    lines = [
        [dataset, way, len(rows), *(mean(rows)[name] for name in SHOWN)]
        for (dataset, way), rows in sorted(measured.items())
    ]
    print(table(["data set", "the assistant's turns", "questions", *SHOWN], lines))
    return 0


async def measure(stores: Sequence[Store]) -> Mapping[tuple[str, str], Figures]:
    """Give the figures of each question, by data set and by what becomes of the assistant."""
    embedder = UseEmbedder()
    found: dict[tuple[str, str], Figures] = {}
    for store in stores:
        for assistant in sorted({row.speaker for row in store.rows}):
            for way, rows in (await _asked(embedder, store, assistant)).items():
                found.setdefault((store.dataset, way), []).extend(rows)
    await embedder.close()
    return found


async def _asked(embedder: UseEmbedder, store: Store, assistant: str) -> Mapping[str, Figures]:
    memories = {row.key: _memory(store, number) for number, row in enumerate(store.rows)}
    said = {memories[row.key].memory_id for row in store.rows if row.speaker == assistant}
    rows = list(memories.values())
    matrix = await embedder.embed_documents([indexed_text(row) for row in rows])
    vectors = dict(zip((row.memory_id for row in rows), matrix, strict=True))
    marked = [replace(row, role=Role.ASSISTANT) if row.memory_id in said else row for row in rows]
    bare = {one: None if one in said else vector for one, vector in vectors.items()}
    held = {
        "with vectors": _held(rows, vectors),
        "by words alone": _held(marked, bare),
        "not kept": _held([row for row in rows if row.memory_id not in said], vectors),
    }
    keys = {memory.memory_id: key for key, memory in memories.items()}
    mine = {key for key, memory in memories.items() if memory.memory_id not in said}
    questions = [question for question in store.questions if question.answers <= mine]
    asked = await embedder.embed_queries([question.text for question in questions])
    found: dict[str, Figures] = {way: [] for way in held}
    for question, query in zip(questions, asked, strict=True):
        for way, working in held.items():
            shared = way == "with vectors"
            ids = [one for one in vectors if shared or one not in said]
            cosines = exact_cosines(ids, np.array([vectors[one] for one in ids]), query)
            nearest = sorted(cosines, key=cosines.__getitem__, reverse=True)[:SEMANTIC_LIMIT]
            scored = working.score(Question(question.text, query, {o: cosines[o] for o in nearest}))
            ranking = [keys[one] for one in scored.ids if one not in said]
            found[way].append(figures(ranking, question.answers))
    return found


def _held(rows: Sequence[Memory], vectors: Mapping[str, Vector | None]) -> WorkingSet:
    pairs = [(row, vectors[row.memory_id]) for row in rows]
    return WorkingSet.build(pairs, revision=1, total=len(pairs))


def _memory(store: Store, number: int) -> Memory:
    row = store.rows[number]
    new = NewMemory(
        user_id=store.name,
        memory_type=MemoryType.FACT,
        content=row.content,
        conversation_id=row.conversation_id,
        is_verbatim=True,
        speaker=row.speaker,
        occur_time=row.occur_time,
    )
    return new.memory(f"{number:06}", utc_now())


def _is_dialogue(store: Store) -> bool:
    return all(row.verbatim for row in store.rows)


if __name__ == "__main__":
    sys.exit(main())
