"""The embedded default: killed amid writes, started twice, index lost, read in the legacy way."""

import shutil
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path

import grpc

from memory_service.v1 import memory_pb2 as pb
from tests.e2e.memories import (
    CONSTRAINT,
    FACT,
    KEYWORD,
    OK,
    PINNED,
    SEMANTIC,
    SKIPPED,
    User,
    contents,
    legs,
    source,
    user_of,
)
from tests.e2e.processes import Program, memory_program, poll

RULE = "Never put peanuts into my food."


def untold(program: Program) -> int:
    """Count what the index was not told yet."""
    with closing(sqlite3.connect(program.log.parent / "memory.db")) as connection:
        (number,) = connection.execute("SELECT count(*) FROM memory_index_outbox").fetchone()
    return int(number)


class Writers:
    """Four clients that create memories until they are stopped, and note what they were told."""

    def __init__(self, user: User) -> None:
        self.acknowledged: dict[str, str] = {}
        self.unknown: set[str] = set()
        self._user = user
        self._over = threading.Event()

    def write(self, number: int) -> None:
        for fact in count():
            if self._over.is_set():
                return
            text = f"Fact {fact} of writer {number}."
            try:
                self.acknowledged[text] = self._user.create(text, request_id=text).memory_id
            except grpc.RpcError:
                self.unknown.add(text)
                return

    def stop(self) -> None:
        self._over.set()


def test_what_was_acknowledged_survives_a_kill_and_a_repeated_request_doubles_nothing(
    tmp_path: Path,
) -> None:
    with memory_program(tmp_path) as program:
        program.start()
        with user_of(program.address) as user, ThreadPoolExecutor(4) as pool:
            writers = Writers(user)
            try:
                for number in range(4):
                    pool.submit(writers.write, number)
                poll(lambda: len(writers.acknowledged), lambda number: number >= 40)
                program.kill()
                poll(lambda: len(writers.unknown), lambda number: number == 4)
            finally:
                writers.stop()
        program.start()
        with user_of(program.address, user.user_id) as user:
            there = {memory.content: memory.memory_id for memory in user.listed()}
            assert len(there) == len(user.listed())
            assert writers.acknowledged.items() <= there.items()
            assert there.keys() <= writers.acknowledged.keys() | writers.unknown
            for text in [*writers.unknown, *writers.acknowledged]:
                again = user.create(text, request_id=text)
                assert again.memory_id == there.setdefault(text, again.memory_id)
            texts = Counter(memory.content for memory in user.listed())
            assert texts == Counter(there.keys())
            poll(user.index_states, lambda states: states == {"synced": len(there)})
            poll(lambda: untold(program), lambda number: number == 0)
            for text in there:
                answer = user.retrieve(text)
                assert text in contents(answer)
                assert not answer.degraded


def test_a_second_service_on_the_same_data_ends_with_one_line_and_harms_nothing(
    embedded: Program, embedded_user: User
) -> None:
    kept = embedded_user.create("Likes tea.")
    poll(embedded_user.index_states, lambda states: states == {"synced": 1})
    second = embedded.run("serve", MEMORY_LISTEN="127.0.0.1:0")
    assert second.returncode == 1
    assert second.stderr.splitlines()[-1].startswith("memory-service: ")
    assert "in use by another process" in second.stderr
    assert "Traceback" not in second.stderr
    answer = embedded_user.retrieve("tea")
    assert SEMANTIC in legs(answer, kept)
    assert not answer.degraded


def test_a_lost_index_is_filled_again_by_itself(tmp_path: Path) -> None:
    with memory_program(tmp_path) as program:
        program.start()
        with user_of(program.address) as user:
            kept = user.create("Drinks black coffee.")
            gone = user.create("Drinks black tea.")
            user.delete(gone)
            poll(user.index_states, lambda states: states == {"synced": 1, "removed": 1})
        assert program.stop() == 0
        shutil.rmtree(tmp_path / "memory.milvus")
        program.start()
        with user_of(program.address, user.user_id) as user:
            first = user.retrieve("black coffee")
            assert contents(first) == ["Drinks black coffee."]
            well = poll(lambda: user.retrieve("black coffee"), lambda answer: not answer.degraded)
            assert contents(well) == ["Drinks black coffee."]
            assert SEMANTIC in legs(well, kept)


def test_the_environment_alone_brings_back_the_legacy_way_and_takes_it_away_again(
    tmp_path: Path,
) -> None:
    with memory_program(tmp_path, MEMORY_READ_MODE="legacy") as legacy:
        legacy.start()
        with user_of(legacy.address) as user:
            rules = [user.create(f"Rule {n}: never {n}.", CONSTRAINT) for n in range(7)]
            cities = [f"Lives in city {n}." for n in range(30)]
            user.create_all([pb.Memory(memory_type=FACT, content=city) for city in cities])
            poll(user.index_states, lambda states: states == {"synced": 37})
            answer = user.retrieve("Lives in city 3.")
            assert source(answer, SEMANTIC).state == OK
            assert source(answer, PINNED).state == source(answer, KEYWORD).state == SKIPPED
            # The index's own order, five rows, and no place reserved for a constraint.
            assert contents(answer)[0] == "Lives in city 3."
            assert len(answer.items) == 5
            assert not any(legs(answer, rule) for rule in rules)
            cosines = [item.score for item in answer.items]
            assert cosines == sorted(cosines, reverse=True)
            # Nothing to search for: the best rows.
            blank = user.retrieve(" ")
            assert source(blank, PINNED).state == OK
            assert len(blank.items) == 5
            assert is_hybrid(user.retrieve("city", mode=pb.RETRIEVE_MODE_HYBRID))
        assert legacy.stop() == 0
    with memory_program(tmp_path) as program:
        program.start()
        with user_of(program.address, user.user_id) as user:
            assert is_hybrid(user.retrieve("Lives in city 3."))


def is_hybrid(answer: pb.RetrieveResponse) -> bool:
    constraints = [one for one in answer.items if one.memory.memory_type == CONSTRAINT]
    return len(constraints) == 5 and all(one.state == OK for one in answer.sources)
