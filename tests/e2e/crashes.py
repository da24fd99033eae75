"""People chat while the services are killed again and again; then their stores are read.

Nothing of the services is trusted afterwards: what they hold is read by SQL, and the index by
`memory-service reconcile`.
"""

import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from sqlalchemy import Engine, create_engine, text

from agent_service.v1 import agent_pb2 as pb
from agent_service.v1.agent_pb2_grpc import AgentServiceStub
from tests.e2e.processes import Program, poll

PATIENCE = 120.0
"""Seconds without any progress after which what waits counts as stuck."""
PAUSE = 1.0
"""Seconds between what one person says, on average: less would only test how long queues get."""
LETTERS = "bcdfghjklmnprstvwz"


@dataclass(frozen=True, slots=True)
class Said:
    """A turn that was acknowledged, and the word that is in no other one."""

    user_id: str
    turn_id: str
    word: str


@dataclass(slots=True)
class Figures:
    """What came of it; all but the first three must be 0."""

    rounds: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    jobs_missing: int = 0
    jobs_doubled: int = 0
    stuck: int = 0
    drift: int = 0

    @property
    def right(self) -> bool:
        """Tell whether everything acknowledged was learnt exactly once and nothing is stuck."""
        faults = (self.lost, self.doubled, self.jobs_missing, self.jobs_doubled)
        return self.acknowledged > 0 and not any((*faults, self.stuck, self.drift))


class Stack:
    """A memory and an agent service on stores of their own."""

    def __init__(self, folder: Path, knobs: Mapping[str, str]) -> None:
        memory = {"MEMORY_DATA_DIR": str(folder), "MEMORY_EMBEDDER": "hash"}
        # A killed worker's job is taken over after its lease.
        memory |= {"MEMORY_JOB_LEASE": "2", "MEMORY_RELAY_LEASE": "2"}
        self.memory = Program("memory_service", "MEMORY_LISTEN", {**memory, **knobs}, folder)
        agent = {
            "AGENT_DATA_DIR": str(folder),
            "AGENT_MEMORY_TARGET": self.memory.address,
            "AGENT_RELAY_LEASE": "2",
            "AGENT_LEASE": "3",
            "AGENT_SWEEP_INTERVAL": "1",
        }
        self.agent = Program("agent_service", "AGENT_LISTEN", {**agent, **knobs}, folder)
        self._memory_url = knobs.get("MEMORY_DATABASE_URL") or f"sqlite:///{folder}/memory.db"
        self._agent_url = knobs.get("AGENT_DATABASE_URL") or f"sqlite:///{folder}/agent.db"

    @property
    def programs(self) -> Mapping[str, Program]:
        return {"memory": self.memory, "agent": self.agent}

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as ending:
            for program in self.programs.values():
                ending.callback(program.clear)
                if "sqlite" not in self._memory_url:
                    assert program.run("migrate").returncode == 0
                program.start()
            yield

    @contextmanager
    def stores(self) -> Iterator["Stores"]:
        engines = [create_engine(url) for url in (self._memory_url, self._agent_url)]
        try:
            yield Stores(*engines)
        finally:
            for engine in engines:
                engine.dispose()


class Stores:
    """Reads both databases, whatever wrote them."""

    def __init__(self, memory: Engine, agent: Engine) -> None:
        self._memory = memory
        self._agent = agent

    def unfinished(self) -> Counter[str]:
        """Count what still waits: turns, requests to learn, jobs, notes to the index."""
        return Counter(
            turns=_count(self._agent, "turns WHERE state = 'running'"),
            to_learn=_count(self._agent, "learn_outbox WHERE state <> 'done'"),
            jobs=_count(self._memory, "memory_jobs WHERE state <> 'done'"),
            notes=_count(self._memory, "memory_index_outbox WHERE state = 'waiting'"),
        )

    def words(self) -> Counter[str]:
        """Count the active memories that hold each word."""
        rows = _rows(self._memory, "SELECT content FROM memories WHERE status = 'active'")
        return Counter(word for (content,) in rows for word in set(str(content).split()))

    def jobs(self) -> Counter[str]:
        """Count the finished jobs of each turn."""
        rows = _rows(self._memory, "SELECT turn_id FROM memory_jobs WHERE state = 'done'")
        return Counter(_word(turn_id) for (turn_id,) in rows)


def _count(engine: Engine, what: str) -> int:
    ((number,),) = _rows(engine, f"SELECT count(*) FROM {what}")  # noqa: S608 - our own words
    return int(str(number))


def _rows(engine: Engine, statement: str) -> Sequence[Sequence[object]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def _word(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class People:
    """Users who each say one new thing after another, and say it again until it was heard."""

    def __init__(self, address: str, users: int, seed: int) -> None:
        self.said: list[Said] = []
        self._address = address
        self._users = users
        self._seed = seed
        self._over = threading.Event()

    @contextmanager
    def talking(self) -> Iterator[None]:
        with ThreadPoolExecutor(self._users) as pool:
            talks = [pool.submit(self._talk, number) for number in range(self._users)]
            try:
                yield
            finally:
                self._over.set()
        for talk in talks:
            talk.result()

    def _talk(self, number: int) -> None:
        draw = random.Random(self._seed * 1000 + number)
        with grpc.insecure_channel(self._address) as channel:
            agent = AgentServiceStub(channel)
            while not self._over.is_set():
                words = ["".join(draw.choices(LETTERS, k=9)) for _ in range(3)]
                self._say(agent, f"user{number}", words)
                self._over.wait(draw.uniform(0, 2 * PAUSE))

    def _say(self, agent: AgentServiceStub, user_id: str, words: Sequence[str]) -> None:
        request = pb.ChatRequest(
            user_id=user_id,
            conversation_id=f"talk-{words[0][0]}",
            message=f"Remember that the {words[0]} of {words[1]} is {words[2]}",
            client_message_id=words[0],
        )
        while not self._over.is_set():
            try:
                for answer in agent.Chat(request, timeout=20):
                    event = answer.event
                    if event.HasField("started"):
                        self.said.append(Said(user_id, event.started.turn_id, words[0]))
                        return
            except grpc.RpcError:
                time.sleep(0.05)


def crash(stack: Stack, *, rounds: int, seed: int, say: Callable[[str], object]) -> Figures:
    """Kill a service at random that many times while people talk, and read what is left."""
    draw = random.Random(seed)
    figures = Figures()
    with stack.running():
        people = People(stack.agent.address, users=6, seed=seed)
        with people.talking():
            for number in range(rounds):
                time.sleep(draw.uniform(0.05, 1.0))
                name = draw.choice(sorted(stack.programs))
                stack.programs[name].kill()
                stack.programs[name].start()
                figures.kills[name] = figures.kills.get(name, 0) + 1
                figures.rounds = number + 1
                say(f"round {number + 1} of {rounds}: {name} killed, {len(people.said)} turns")
        with stack.stores() as stores:
            _settle(stores, figures)
            _compare(stores, people.said, figures)
            figures.drift = _drift(stack.memory, stores)
    return figures


def _settle(stores: Stores, figures: Figures) -> None:
    least, end = math.inf, 0.0
    while waiting := stores.unfinished().total():
        if waiting < least:
            least, end = waiting, time.monotonic() + PATIENCE
        if time.monotonic() > end:
            break
        time.sleep(0.2)
    figures.stuck = waiting


def _compare(stores: Stores, said: Sequence[Said], figures: Figures) -> None:
    words, jobs = stores.words(), stores.jobs()
    figures.acknowledged = len(said)
    figures.lost = sum(words[one.word] == 0 for one in said)
    figures.doubled = sum(words[one.word] > 1 for one in said)
    figures.jobs_missing = sum(jobs[one.turn_id] == 0 for one in said)
    figures.jobs_doubled = sum(jobs[one.turn_id] > 1 for one in said)


def _drift(memory: Program, stores: Stores) -> int:
    """Count what SQL and index still do not agree about after one reconcile."""
    found = 0
    for _ in range(2):
        memory.stop()  # an embedded index belongs to one process
        found = _reconciled(memory)
        memory.start()
        poll(stores.unfinished, lambda waiting: not waiting.total())
    return found


def _reconciled(memory: Program) -> int:
    done = memory.run("reconcile", "--json")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    return int(counts["missing"]) + int(counts["orphaned"])
