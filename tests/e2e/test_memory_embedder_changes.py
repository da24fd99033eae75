"""Another embedder over the same data: it starts, says what is missing, and mends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_service.v1 import memory_pb2 as pb
from tests.e2e.memories import (
    CONSTRAINT,
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

RULE = "Never put peanuts into my food."
COFFEE = "Drinks strong black coffee every morning."


@contextmanager
def serving(folder: Path, **knobs: str) -> Iterator[tuple[Program, User]]:
    with memory_program(folder, **knobs) as program:
        program.start()
        with user_of(program.address, "the user") as user:
            yield program, user
        assert program.stop() == 0


def begin(user: User) -> pb.Memory:
    user.create(RULE, CONSTRAINT)
    coffee = user.create(COFFEE)
    user.delete(user.create("Drinks strong black tea."))
    poll(user.index_states, lambda states: states == {"synced": 2, "removed": 1})
    return coffee


def assert_well(user: User, coffee: pb.Memory) -> None:
    answer = user.retrieve("black coffee")
    assert not answer.degraded
    assert source(answer, SEMANTIC).state == OK
    assert SEMANTIC in legs(answer, coffee)
    assert sorted(contents(answer)) == [COFFEE, RULE]


def test_vectors_of_another_length_are_mended_by_reindex_and_nothing_is_dropped(
    tmp_path: Path,
) -> None:
    old = {"MEMORY_EMBEDDER": "hash", "MEMORY_EMBEDDER_DIMS": "64"}
    new = {"MEMORY_EMBEDDER": "hash", "MEMORY_EMBEDDER_DIMS": "128"}
    with serving(tmp_path, **old) as (_, user):
        coffee = begin(user)
        assert_well(user, coffee)
    # Without the worker nobody fills the new collection, so what is missing can be looked at.
    with serving(tmp_path, MEMORY_WORKER="off", **new) as (program, user):
        answer = user.retrieve("black coffee")
        assert answer.degraded
        semantic = source(answer, SEMANTIC)
        assert (semantic.state, semantic.reason.split(",")[0]) == (DEGRADED, "reindexing")
        assert source(answer, PINNED).state == source(answer, KEYWORD).state == OK
        assert sorted(contents(answer)) == [COFFEE, RULE]
        assert KEYWORD in legs(answer, coffee)
        assert len(user.listed()) == 3
    mended = program.run("reindex")
    assert mended.returncode == 0, mended.stderr
    assert mended.stdout.splitlines()[-1] == "2 of 2 memories: ready"
    with serving(tmp_path, MEMORY_WORKER="off", **new) as (_, user):
        assert_well(user, coffee)
        assert len(user.listed()) == 3
    collections = {folder.name for folder in (tmp_path / "memory.milvus" / "collections").iterdir()}
    assert collections == {"memories_hash_1_64", "memories_hash_1_128"}


def test_another_model_is_mended_in_the_background(tmp_path: Path) -> None:
    with serving(tmp_path, MEMORY_EMBEDDER="use") as (_, user):
        coffee = begin(user)
        drink = user.retrieve("something to drink at breakfast")
        assert SEMANTIC in legs(drink, coffee)
    with serving(tmp_path, MEMORY_EMBEDDER="hash") as (_, user):
        assert sorted(contents(user.retrieve("black coffee"))) == [COFFEE, RULE]
        poll(lambda: user.retrieve("black coffee"), lambda answer: not answer.degraded)
        assert_well(user, coffee)
        assert len(user.listed()) == 3
