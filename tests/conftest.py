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
