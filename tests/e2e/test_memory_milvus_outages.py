"""Milvus killed, hung or never started: what is asked is answered, and all is well again later."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory_service.v1 import memory_pb2 as pb
from tests.e2e.memories import (
    CONSTRAINT,
    DEADLINE,
    DEGRADED,
    KEYWORD,
    OK,
    PINNED,
    SEMANTIC,
    User,
    contents,
    legs,
    source,
    user_of,
)
from tests.e2e.processes import Program, memory_program, poll
from tests.services.milvus import Milvus, milvus_server

pytestmark = pytest.mark.milvus_server

OUTAGE = {"timeout", "unavailable", "breaker_open"}
RULE = "Never put peanuts into my food."
COFFEE = "Drinks strong black coffee every morning."
STREET = "The dentist has moved to Baker Street."
VIOLIN = "Plays the violin in an orchestra."


@pytest.fixture(scope="module")
def killable(milvus_cache: Path) -> Iterator[Milvus]:
    """A server for killing: it needs less time than usual to believe that it was killed."""
    with milvus_server(milvus_cache, session_seconds=3) as server:
        yield server


@pytest.fixture(scope="module")
def served(milvus: Milvus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A service on the Milvus of the session, which tests may pause but not kill."""
    folder = tmp_path_factory.mktemp("served")
    with memory_program(folder, **knobs(milvus)) as program:
        program.start()
        yield program


def knobs(milvus: Milvus) -> dict[str, str]:
    return {
        "MEMORY_MILVUS_URI": milvus.uri,
        "MEMORY_EMBEDDER": "use",
        "MEMORY_INDEX_VISIBLE_AFTER": "1",  # so that what was told is soon not in doubt any more
    }


@contextmanager
def paused(milvus: Milvus) -> Iterator[None]:
    milvus.pause()
    try:
        yield
    finally:
        milvus.go_on()


@dataclass(frozen=True)
class Life:
    """A user's memories before, during and after an outage."""

    user: User
    program: Program
    coffee: pb.Memory
    street: pb.Memory

    @classmethod
    def begin(cls, user: User, program: Program) -> "Life":
        user.create(RULE, CONSTRAINT)
        return cls(user, program, user.create(COFFEE), user.create(STREET))

    def in_an_outage(self) -> pb.Memory:
        """Check that answers come in time and say what is missing; write and delete meanwhile."""
        answer = self._degraded("something to drink at breakfast")
        assert RULE in contents(answer)
        assert SEMANTIC in legs(answer, self.coffee)
        assert KEYWORD in legs(self._degraded("black coffee"), self.coffee)
        violin = self.user.create(VIOLIN)
        self.user.delete(self.street)
        assert SEMANTIC in legs(self._degraded("musical instrument"), violin)
        assert STREET not in contents(self._degraded("dentist in Baker Street"))
        return violin

    def all_is_well_again(self, violin: pb.Memory) -> None:
        """Check that the index comes back by itself and learns what happened meanwhile."""
        poll(self._recalled, lambda answer: not answer.degraded)
        states = {"synced": 3, "removed": 1}
        poll(self.user.index_states, lambda now: now == states)
        poll(self._untold, lambda count: count == 0)
        # From here on only the index can tell what is near to a query.
        answer = poll(self._recalled, lambda now: SEMANTIC in legs(now, violin))
        assert KEYWORD not in legs(answer, violin)
        assert source(answer, SEMANTIC).state == OK
        assert STREET not in contents(self.user.retrieve("dentist in Baker Street"))

    def _degraded(self, query: str) -> pb.RetrieveResponse:
        begun = time.monotonic()
        answer = self.user.retrieve(query)
        assert time.monotonic() - begun < DEADLINE
        semantic = source(answer, SEMANTIC)
        assert answer.degraded
        assert (semantic.state, semantic.reason in OUTAGE) == (DEGRADED, True), semantic.reason
        assert source(answer, PINNED).state == source(answer, KEYWORD).state == OK
        return answer

    def _recalled(self) -> pb.RetrieveResponse:
        answer = self.user.retrieve("musical instrument")
        assert STREET not in contents(answer)
        return answer

    def _untold(self) -> int:
        folder = self.program.log.parent
        with closing(sqlite3.connect(folder / "memory.db")) as connection:
            (count,) = connection.execute("SELECT count(*) FROM memory_index_outbox").fetchone()
        return int(count)


def test_a_service_whose_milvus_never_started_answers_and_finds_it_when_it_comes(
    killable: Milvus, tmp_path: Path
) -> None:
    killable.kill()
    with memory_program(tmp_path, **knobs(killable)) as program:
        program.start()
        with user_of(program.address) as user:
            life = Life.begin(user, program)
            violin = life.in_an_outage()
            killable.start()
            life.all_is_well_again(violin)


def test_a_service_whose_milvus_is_killed_answers_and_finds_it_when_it_is_back(
    killable: Milvus, tmp_path: Path
) -> None:
    if not killable.running:
        killable.start()
    killable.wait_until_up()
    own = knobs(killable) | {"MEMORY_MILVUS_NAMESPACE": "killed_"}
    with memory_program(tmp_path, **own) as program:
        program.start()
        with user_of(program.address) as user:
            life = Life.begin(user, program)
            poll(user.index_states, lambda now: now == {"synced": 3})
            assert not user.retrieve("coffee").degraded
            killable.kill()
            violin = life.in_an_outage()
            killable.start()
            life.all_is_well_again(violin)


def test_a_service_whose_milvus_hangs_answers_and_finds_it_when_it_goes_on(
    milvus: Milvus, served: Program
) -> None:
    with user_of(served.address) as user:
        life = Life.begin(user, served)
        poll(user.index_states, lambda now: now == {"synced": 3})
        poll(lambda: user.retrieve("coffee"), lambda answer: not answer.degraded)
        with paused(milvus):
            violin = life.in_an_outage()
        life.all_is_well_again(violin)


def test_a_caller_in_a_hurry_is_answered_while_milvus_hangs(
    milvus: Milvus, served: Program
) -> None:
    with user_of(served.address) as user:
        user.create(RULE, CONSTRAINT)
        coffee = user.create(COFFEE)
        poll(user.index_states, lambda now: now == {"synced": 2})
        poll(lambda: user.retrieve("coffee"), lambda answer: not answer.degraded)
        with paused(milvus):
            answers = [user.retrieve("black coffee", timeout=0.3) for _ in range(8)]
    for answer in answers:
        assert answer.degraded
        assert RULE in contents(answer)
        assert KEYWORD in legs(answer, coffee)
