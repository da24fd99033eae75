"""Real services, one of each per test session, started when the first test asks."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.services.mariadb import MariaDB, mariadb
from tests.services.milvus import Milvus, milvus_server

settings.register_profile(
    "no_time_limits", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no_time_limits")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one worker of xdist, and all that start a Milvus server too.

    A Milvus server takes fixed ports and much memory, so there is never more than one.
    """
    needing = {item.path for item in items if _needs_milvus(item)}
    for item in items:
        group = "milvus" if item.path in needing else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def _needs_milvus(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return "milvus_cache" in fixtures or item.get_closest_marker("milvus_server") is not None


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDB]:
    if shutil.which("mariadbd") is None:
        _missing("mariadbd is not installed")
    with mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def milvus_cache(pytestconfig: pytest.Config) -> Path:
    """Where the server's programs stay unpacked between sessions."""
    return pytestconfig.cache.mkdir("milvus")


@pytest.fixture(scope="session")
def milvus(milvus_cache: Path) -> Iterator[Milvus]:
    with milvus_server(milvus_cache) as server:
        server.start()
        server.wait_until_up()
        yield server


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI must not skip it")
    pytest.skip(what)
