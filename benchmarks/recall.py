"""Recall of Retrieve, measured through the gRPC API of a real service.

    python -m benchmarks.recall PATH…        paths of the data sets, see docs/benchmarks.md

Every store becomes one user. Four ways are measured on the same stored data: hybrid; the vectors
alone (legacy mode: index order, at most 20 rows); hybrid with the index down; hybrid with the
embedder down, which is the keyword leg alone. Then what each cut returns at limit 10.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from benchmarks.chat import CHAT
from benchmarks.datasets import Row, Store, load
from benchmarks.figures import figures, mean, table
from benchmarks.service import CLOSED_PORT, memory_service
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1.memory_pb2_grpc import MemoryServiceStub

BATCH = 500
DEEP = pb.TypeBudgets(constraint=50, preference=50, todo_hint=50, fact=50)
SHOWN = ("R@5", "R@10", "R@25", "R@50", "MRR", "nDCG@10")
CUTS = {
    "off": pb.RETRIEVE_CUT_OFF,
    "gate": pb.RETRIEVE_CUT_GATE,
    "tight": pb.RETRIEVE_CUT_TIGHT,
    "strict": pb.RETRIEVE_CUT_STRICT,
}
DOWN = {
    "index down": {"MEMORY_MILVUS_URI": CLOSED_PORT},
    "embedder down": {
        "MEMORY_EMBEDDER": "openai",
        "MEMORY_EMBEDDER_BASE_URL": CLOSED_PORT,
        "MEMORY_EMBEDDER_API_KEY": "none",
        "MEMORY_EMBEDDER_MODEL": "none",
        "MEMORY_EMBEDDER_DIMS": "512",
    },
}


@dataclass(frozen=True, slots=True)
class Filed:
    """A store and the memory ids that its rows got."""

    store: Store
    user_id: str
    keys: dict[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table of figures."""

    dataset: str
    category: str
    way: str
    values: dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and give its exit code."""
    options = _parser().parse_args(arguments)
    stores = load(options.paths)
    if not stores:
        sys.stderr.write("no data set found below the paths\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="recall-") as folder:
        lines, cuts, silences = measure(stores, Path(folder))
    if options.json:
        print(
            json.dumps({"recall": [_plain(line) for line in lines], "cuts": cuts, "chat": silences})
        )
        return 0
    rows = [[x.dataset, x.category, x.way, *(x.values[n] for n in SHOWN)] for x in lines]
    print(table(["data set", "category", "way", *SHOWN], rows))
    print("\nAt limit 10:")
    print(table(["data set", "cut", "R@10", "rows", "precision"], cuts))
    print(f"\n{len(CHAT)} messages of small talk and tasks that need no memory:")
    print(table(["store", "cut", "come back empty", "rows"], silences))
    return 0


def measure(
    stores: Sequence[Store], folder: Path
) -> tuple[list[Line], list[list[object]], list[list[object]]]:
    """Store everything once, then ask in every way."""
    lines: list[Line] = []
    with memory_service(folder) as stub:
        filed = [_file(stub, store, number) for number, store in enumerate(stores)]
        lines += _recall(stub, filed, "hybrid", pb.RETRIEVE_MODE_HYBRID)
        lines += _recall(stub, filed, "vectors alone", pb.RETRIEVE_MODE_LEGACY)
        cuts = [line for name in CUTS for line in _cut(stub, filed, name)]
        silences = [line for name in CUTS for line in _chat(stub, filed, name)]
    for way, settings in DOWN.items():
        with memory_service(folder, settings) as stub:
            lines += _recall(stub, filed, way, pb.RETRIEVE_MODE_HYBRID)
    return lines, cuts, silences


def _file(stub: MemoryServiceStub, store: Store, number: int) -> Filed:
    _say(f"storing {store.dataset} {store.name}: {len(store.rows)} memories")
    user_id = f"{store.dataset}/{store.name}"
    keys: dict[str, str] = {}
    for start in range(0, len(store.rows), BATCH):
        rows = store.rows[start : start + BATCH]
        request = pb.BatchCreateMemoriesRequest(
            user_id=user_id,
            request_id=f"recall-{number}-{start}",
            memories=[_memory(row) for row in rows],
        )
        answer = stub.BatchCreateMemories(request, timeout=300)
        for row, result in zip(rows, answer.results, strict=True):
            if result.HasField("error"):
                sys.exit(f"{store.name} {row.key}: {result.error.message}")
            keys[result.memory.memory_id] = row.key
    return Filed(store, user_id, keys)


def _memory(row: Row) -> pb.Memory:
    memory = pb.Memory(
        memory_type=pb.MEMORY_TYPE_FACT,
        content=row.content,
        conversation_id=row.conversation_id,
        is_verbatim=row.verbatim,
        speaker=row.speaker,
        turn_id=row.key if row.verbatim else "",
    )
    if row.occur_time is not None:
        stamp = Timestamp()
        stamp.FromDatetime(row.occur_time)
        memory.occur_time.CopyFrom(stamp)
    return memory


def _recall(
    stub: MemoryServiceStub, filed: Iterable[Filed], way: str, mode: pb.RetrieveMode.ValueType
) -> list[Line]:
    by_category: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    legacy = mode == pb.RETRIEVE_MODE_LEGACY
    for one in filed:
        _say(f"asking {one.store.dataset} {one.store.name}: {way}")
        for question in one.store.questions:
            request = pb.RetrieveRequest(
                user_id=one.user_id,
                query=question.text,
                mode=mode,
                limit=20 if legacy else 50,
                budgets=None if legacy else DEEP,
                cut=pb.RETRIEVE_CUT_OFF,
            )
            found = [one.keys[i.memory.memory_id] for i in stub.Retrieve(request, timeout=30).items]
            values = figures(found, question.answers)
            by_category[one.store.dataset, "all"].append(values)
            by_category[one.store.dataset, question.category].append(values)
    return [
        Line(dataset, category, way, mean(values))
        for (dataset, category), values in sorted(by_category.items())
        if category == "all" or dataset == "locomo"
    ]


def _cut(stub: MemoryServiceStub, filed: Iterable[Filed], name: str) -> list[list[object]]:
    by_dataset: dict[str, list[dict[str, float]]] = defaultdict(list)
    for one in filed:
        _say(f"asking {one.store.dataset} {one.store.name}: cut {name}")
        for question in one.store.questions:
            found = _ask(stub, one, question.text, name)
            hits = len(question.answers & set(found))
            by_dataset[one.store.dataset].append(
                {"recall": hits / len(question.answers), "rows": float(len(found)), "hits": hits}
            )
    result: list[list[object]] = []
    for dataset, values in by_dataset.items():
        average = mean(values)
        precision = average["hits"] / average["rows"] if average["rows"] else 0.0
        result.append([dataset, name, average["recall"], average["rows"], precision])
    return result


def _chat(stub: MemoryServiceStub, filed: Iterable[Filed], name: str) -> list[list[object]]:
    by_dataset: dict[str, list[int]] = defaultdict(list)
    for one in filed:
        by_dataset[one.store.dataset] += [len(_ask(stub, one, text, name)) for text in CHAT]
    return [
        [dataset, name, sum(n == 0 for n in counts) / len(counts), sum(counts) / len(counts)]
        for dataset, counts in by_dataset.items()
    ]


def _ask(stub: MemoryServiceStub, one: Filed, text: str, cut: str) -> list[str]:
    request = pb.RetrieveRequest(
        user_id=one.user_id, query=text, limit=10, budgets=DEEP, cut=CUTS[cut]
    )
    return [one.keys[i.memory.memory_id] for i in stub.Retrieve(request, timeout=30).items]


def _plain(line: Line) -> dict[str, object]:
    named = {"dataset": line.dataset, "category": line.category, "way": line.way}
    return {**named, **line.values}


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recall",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="+", type=Path, help="data sets, files or folders")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser


if __name__ == "__main__":
    sys.exit(main())
