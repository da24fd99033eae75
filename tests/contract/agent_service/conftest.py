"""Each contract test runs on the store in memory, on SQLite and on MariaDB."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_service.adapters.sql.migrate import MIGRATIONS
from agent_service.domain.errors import StoreUnavailable
from database.access import Database
from database.engine import open_engine
from tests.contract.agent_service.agent_stores import Stores, empty, fake_stores, sql_stores

_ON_SQL = ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)]


@pytest.fixture(scope="session")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{Path(tmp_path_factory.mktemp('agent')) / 'agent.db'}"
    MIGRATIONS.upgrade(url)
    return url


@pytest.fixture(scope="session")
def mariadb_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue("mariadb_server").url()
    MIGRATIONS.upgrade(url)
    return url


@pytest.fixture(params=_ON_SQL)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from _empty_database(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=["fake", *_ON_SQL])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "fake":
        yield fake_stores()
        return
    for database in _empty_database(request.getfixturevalue(f"{request.param}_url")):
        yield sql_stores(database)


def _empty_database(url: str) -> Iterator[Database]:
    database = Database(open_engine(url, pool_size=4), unavailable=StoreUnavailable, threads=4)
    empty(database.engine)
    yield database
    database.close()
