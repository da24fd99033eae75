"""Real services, one of each per test session, started when the first test asks."""

import os
import shutil
from collections.abc import Iterator

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
def milvus() -> Iterator[Milvus]:
    with milvus_server() as server:
        yield server


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI must not skip it")
    pytest.skip(what)
