"""Each contract test of the store runs in memory, on SQLite and on MariaDB."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_service.adapters.sql.migrate import MIGRATIONS
from memory_service.adapters.sql.store import SqlMemoryStore
from tests.contract.memory_service.memory_stores import Stores, empty, fake_stores, open_sql

_ON_SQL = ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)]


@pytest.fixture(scope="session")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{Path(tmp_path_factory.mktemp('memory')) / 'memory.db'}"
    MIGRATIONS.upgrade(url)
    return url


@pytest.fixture(scope="session")
def mariadb_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue("mariadb_server").url()
    MIGRATIONS.upgrade(url)
    return url


@pytest.fixture(params=_ON_SQL)
def sql(request: pytest.FixtureRequest) -> Iterator[tuple[SqlMemoryStore, Stores]]:
    """Give what only a database can do wrong: its engine, and the ports."""
    yield from _emptied(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def mariadb_sql(mariadb_url: str) -> Iterator[tuple[SqlMemoryStore, Stores]]:
    """Give what only a server can do: lose connections, deadlock."""
    yield from _emptied(mariadb_url)


@pytest.fixture(params=["fake", *_ON_SQL])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "fake":
        yield fake_stores()
        return
    for _, stores in _emptied(request.getfixturevalue(f"{request.param}_url")):
        yield stores


def _emptied(url: str) -> Iterator[tuple[SqlMemoryStore, Stores]]:
    store, stores = open_sql(url)
    empty(store.database.engine)
    yield store, stores
    store.close()
