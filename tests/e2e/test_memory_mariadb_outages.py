"""MariaDB: connections cut, server stopped, server killed amid writes: nothing is half written."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import grpc
import pytest

from rpc.errors import Failure, read_failure
from tests.e2e.memories import CONSTRAINT, User, contents, user_of
from tests.e2e.processes import Program, memory_program, poll
from tests.services.mariadb import MariaDB, mariadb

pytestmark = pytest.mark.mariadb

RULE = "Never put peanuts into my food."


@pytest.fixture(scope="module")
def database() -> Iterator[MariaDB]:
    """A server for stopping and killing."""
    with mariadb() as server:
        yield server


@pytest.fixture(scope="module")
def url(database: MariaDB) -> str:
    return database.url()


@pytest.fixture(scope="module")
def served(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("served")
    knobs = {"MEMORY_DATABASE_URL": url, "MEMORY_MILVUS_URI": "off"}
    with memory_program(folder, **knobs) as program:
        assert program.run("migrate").returncode == 0
        program.start()
        yield program


@pytest.fixture
def user(served: Program) -> Iterator[User]:
    with user_of(served.address) as user:
        yield user


def connections(database: MariaDB, url: str) -> list[int]:
    """Name the connections that the service holds."""
    name = url.rpartition("/")[2]
    rows = database.execute(f"SELECT id FROM information_schema.processlist WHERE db = '{name}'")  # noqa: S608
    return [row[0] for row in rows]


def failure(call: Any) -> Failure | None:
    try:
        call()
    except grpc.RpcError as error:
        return read_failure(error)
    return None


def assert_whole(database: MariaDB, url: str, user: User) -> None:
    """Check that each memory has all that is written with it, and that nothing else is there."""
    name = url.rpartition("/")[2]
    mine = f"WHERE user_id = '{user.user_id}'"

    def value(expression: str, of: str) -> int:
        ((number,),) = database.execute(f"SELECT {expression} FROM {name}.{of} {mine}")  # noqa: S608
        return int(number)

    rows = len(user.listed())
    with_vectors = f"memories JOIN {name}.memory_embeddings USING (memory_id)"
    for table in ("memories", "memory_history", "memory_requests", "memory_index_outbox"):
        assert value("count(*)", table) == rows, table
    assert value("count(*)", with_vectors) == rows
    assert value("max(revision)", "memories") == value("revision", "memory_user_states") == rows


def test_killed_connections_are_not_noticed(database: MariaDB, url: str, user: User) -> None:
    user.create(RULE, CONSTRAINT)
    before = connections(database, url)
    assert before
    for one in before:
        database.execute(f"KILL {one}")
    user.create("Likes tea.")
    assert sorted(contents(user.retrieve("tea"))) == ["Likes tea.", RULE]
    assert_whole(database, url, user)


def test_connections_that_timed_out_are_not_noticed(
    database: MariaDB, url: str, user: User
) -> None:
    ((seconds,),) = database.execute("SELECT @@GLOBAL.wait_timeout")
    try:
        database.execute("SET GLOBAL wait_timeout = 1")
        for one in connections(database, url):  # those that come now have the short life
            database.execute(f"KILL {one}")
        user.create("Likes tea.")
        with ThreadPoolExecutor() as pool:
            list(pool.map(user.retrieve, ["tea"] * 40))
        first = set(connections(database, url))
        assert len(first) > 1
        # Health asks each second, and keeps one connection alive.
        poll(lambda: set(connections(database, url)) & first, lambda left: len(left) <= 1)
        user.create(RULE, CONSTRAINT)
        assert sorted(contents(user.retrieve("tea"))) == ["Likes tea.", RULE]
    finally:
        database.execute(f"SET GLOBAL wait_timeout = {seconds}")
    assert_whole(database, url, user)


def test_a_stopped_database_is_unavailable_for_a_while(
    database: MariaDB, url: str, user: User
) -> None:
    user.create(RULE, CONSTRAINT)
    database.stop()
    try:
        for call in (
            lambda: user.create("Likes tea.", request_id="tea"),
            lambda: user.retrieve("tea"),
            user.listed,
        ):
            told = failure(call)
            assert told is not None
            assert (told.code, told.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
            assert told.retry_after
    finally:
        database.start()
    poll(lambda: failure(lambda: user.create("Likes tea.", request_id="tea")), lambda f: f is None)
    assert sorted(contents(user.retrieve("tea"))) == ["Likes tea.", RULE]
    assert_whole(database, url, user)


def test_a_database_killed_amid_writes_has_each_of_them_wholly_or_not_at_all(
    database: MariaDB, url: str, user: User
) -> None:
    acknowledged: dict[str, str] = {}
    unknown: dict[str, grpc.StatusCode] = {}
    enough, over = threading.Event(), threading.Event()

    def write(writer: int) -> None:
        for number in count():
            text = f"Fact {number} of writer {writer}."
            try:
                acknowledged[text] = user.create(text, request_id=text).memory_id
            except grpc.RpcError as error:
                unknown[text] = read_failure(error).code
            if len(acknowledged) > 40:
                enough.set()
            if over.is_set():
                return

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for one in writers:
        one.start()
    try:
        assert enough.wait(60)
        database.kill()
        poll(lambda: len(unknown), lambda count: count >= 4)
        database.start()
    finally:
        over.set()
        for one in writers:
            one.join()
    poll(lambda: failure(user.listed), lambda told: told is None)
    assert set(unknown.values()) == {grpc.StatusCode.UNAVAILABLE}
    there = {memory.content: memory.memory_id for memory in user.listed()}
    assert acknowledged.items() <= there.items()
    assert there.keys() <= acknowledged.keys() | unknown.keys()
    assert_whole(database, url, user)
    for text in sorted(unknown):
        again = user.create(text, request_id=text)
        assert there.get(text, again.memory_id) == again.memory_id
    assert len(user.listed()) == len(acknowledged.keys() | unknown.keys())
    assert_whole(database, url, user)
